// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// watch records every watched object that ever existed, and those that were deleted.
type watch struct {
	looksAt func(client.Object) bool
	mu      sync.Mutex
	created sets.Set[string]
	deleted sets.Set[string]
}

// newWatch watches objects of one type until the spec ends, with an informer that only watches use.
func newWatch(ctx context.Context, object client.Object, looksAt func(client.Object) bool) *watch {
	GinkgoHelper()
	w := &watch{looksAt: looksAt, created: sets.New[string](), deleted: sets.New[string]()}
	informer, err := env.watches.GetInformer(ctx, object)
	Expect(err).NotTo(HaveOccurred())
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.remember(w.created, object) },
		DeleteFunc: func(object any) { w.remember(w.deleted, object) },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return informer.RemoveEventHandler(registration) })
	return w
}

// watchMachines watches the Machines of a fixture.
func (f *fixture) watchMachines(ctx context.Context) *watch {
	GinkgoHelper()
	return newWatch(ctx, &clusterv1.Machine{}, func(machine client.Object) bool {
		return machine.GetLabels()[v1alpha1.TemplateLabel] == f.name
	})
}

// remember adds an object's name to a set, if it is watched.
func (w *watch) remember(names sets.Set[string], object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	found, ok := object.(client.Object)
	if !ok || !w.looksAt(found) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	names.Insert(found.GetName())
}

// everCreated returns the names of all objects that ever existed.
func (w *watch) everCreated() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sets.List(w.created)
}

// everDeleted returns the names of all objects that were deleted.
func (w *watch) everDeleted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sets.List(w.deleted)
}
