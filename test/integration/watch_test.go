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

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// machineWatch remembers every Machine there ever was, and those that went.
type machineWatch struct {
	mu      sync.Mutex
	created sets.Set[string]
	deleted sets.Set[string]
}

// watchMachines watches the Machines of a fixture until the spec ends, by an
// informer that nobody else uses.
func (f *fixture) watchMachines(ctx context.Context) *machineWatch {
	GinkgoHelper()
	w := &machineWatch{created: sets.New[string](), deleted: sets.New[string]()}
	informer, err := env.watches.GetInformer(ctx, &clusterv1.Machine{})
	Expect(err).NotTo(HaveOccurred())
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.remember(w, w.created, object) },
		DeleteFunc: func(object any) { f.remember(w, w.deleted, object) },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return informer.RemoveEventHandler(registration) })
	return w
}

// remember adds a Machine's name to a set, if it is one of the fixture's.
func (f *fixture) remember(w *machineWatch, names sets.Set[string], object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	machine, ok := object.(*clusterv1.Machine)
	if !ok || machine.Labels[v1alpha1.TemplateLabel] != f.name {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	names.Insert(machine.Name)
}

// everCreated returns the names of all Machines there ever were.
func (w *machineWatch) everCreated() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sets.List(w.created)
}

// everDeleted returns the names of all Machines that went.
func (w *machineWatch) everDeleted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sets.List(w.deleted)
}
