// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// handleChanges tells a handler of the objects of some kinds in one cluster, until the test ends.
func handleChanges(ctx context.Context, t *testing.T, kubeconfig string, handler toolscache.ResourceEventHandler, kinds ...client.Object) {
	t.Helper()
	g := NewWithT(t)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := cache.New(config, cache.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	for _, kind := range kinds {
		informer, err := objects.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = informer.AddEventHandler(handler)
		g.Expect(err).NotTo(HaveOccurred())
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- objects.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the watches of a cluster: %v", err)
		}
	})
	g.Expect(objects.WaitForCacheSync(ctx)).To(BeTrue())
}
