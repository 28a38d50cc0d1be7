// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	_ "embed"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// General is a template and a NodePool, and a Deployment with three Pods that need Nodes.
//
//go:embed testdata/general.yaml
var General []byte

// AwaitServed waits until discovery in the API server contains the kinds of the CustomResourceDefinitions, shortly
// after they are established.
func AwaitServed(ctx context.Context, g *gomega.WithT, s *stack.Stack) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	client, err := discovery.NewDiscoveryClientForConfig(config)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for _, version := range []string{"karpenter.cluster.x-k8s.io/v1alpha1", "karpenter.sh/v1"} {
		g.Eventually(ctx, func() error {
			_, err := client.ServerResourcesForGroupVersion(version)
			return err
		}).WithTimeout(time.Minute).WithPolling(Poll).Should(gomega.Succeed(), version)
	}
}

// AwaitPods waits until as many Pods of General run.
func AwaitPods(ctx context.Context, g *gomega.WithT, s *stack.Stack, count int) {
	g.Eventually(ctx, func() (int, error) { return RunningPods(ctx, s) }).WithTimeout(3*time.Minute).WithPolling(Poll).
		Should(gomega.Equal(count), "Pods that run")
}

// RunningPods returns how many Pods of General run.
func RunningPods(ctx context.Context, s *stack.Stack) (int, error) {
	pods := &corev1.PodList{}
	err := s.Workload.List(ctx, pods, client.InNamespace(corev1.NamespaceDefault), client.MatchingLabels{"app": "general"})
	running := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running, err
}
