// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

const (
	groupKind    = "TestMachinePool"
	instanceKind = "TestMachinePoolMachine"

	// providerBound is how long the provider's cache can withhold changes at a time. It is behind
	// by less than twice that, which must be less than what the operator waits for it
	// (internal/clients, Timings.Settle). It is an assumption that this is long enough.
	providerBound = 4 * time.Second

	// toDrained is how long after its deletion Cluster API deletes the instance of a Machine that
	// no hook blocks.
	toDrained = 2 * time.Second
)

// providerKinds are the kinds in the provider's cache. It knows its instances without a cache.
var providerKinds = []string{"MachinePool", "Machine"}

// poolProvider is the infrastructure provider of MachinePools: it creates and removes instances to
// match the replicas that it sees, and reports them. In runs with seeds its view is late.
func (w *simulation) poolProvider() {
	w.server.actor = "provider"
	w.provider.catchUp(w.mode.random, func(*change) {})
	for _, name := range sortedNames(w.server.head[groupKind]) {
		group := w.group(name)
		owner := metav1.GetControllerOf(group)
		if owner == nil {
			continue
		}
		if group.GetDeletionTimestamp() != nil {
			w.endGroup(group, owner.Name)
		} else if pool, seen := w.provider.view["MachinePool"][owner.Name].(*clusterv1.MachinePool); seen {
			w.keepReplicas(pool)
			w.report(group, owner.Name)
		}
	}
}

// keepReplicas creates and removes instances. It removes one by deleting its Machine, so that
// Cluster API drains it; one that has no Machine yet must wait.
func (w *simulation) keepReplicas(pool *clusterv1.MachinePool) {
	instances := w.instancesOf(pool.Name)
	create, remove := model.MachinePool(w.scaling.provider, lo.FromPtr(pool.Spec.Replicas), -1, lo.Map(instances, w.asProviderSees))
	w.noteCreation(pool.Name, staying(instances), w.serving(instances), min(int(create), w.machineLimit-len(instances)))
	for range min(int(create), w.machineLimit-len(instances)) {
		w.server.put(newInstance(pool.Name, pool.Name+"-"+suffix(w.server.objects)))
	}
	for _, instance := range instances {
		_, seen := w.provider.view["Machine"][instance.GetName()]
		if !seen || instance.GetDeletionTimestamp() == nil && !slices.Contains(remove, w.place(instance)) {
			continue
		}
		if machine := w.machine(instance.GetName()); machine != nil && machine.DeletionTimestamp.IsZero() {
			w.noteRemoval(machine, w.provider.view)
			must(w.live().Delete(context.Background(), machine))
		}
	}
}

// serving counts the instances that are not being deleted.
func (w *simulation) serving(instances []*unstructured.Unstructured) int {
	return lo.CountBy(staying(instances), func(name string) bool { m := w.machine(name); return m == nil || !leaving(m) })
}

// staying returns the names of the instances that are not being deleted.
func staying(instances []*unstructured.Unstructured) []string {
	var names []string
	for _, instance := range instances {
		if instance.GetDeletionTimestamp() == nil {
			names = append(names, instance.GetName())
		}
	}
	return names
}

// asProviderSees returns the provider's view: the actual instances, with the annotations from its
// cache.
func (w *simulation) asProviderSees(instance *unstructured.Unstructured, _ int) model.Instance {
	annotated := false
	if machine, seen := w.provider.view["Machine"][instance.GetName()]; seen {
		_, annotated = machine.GetAnnotations()[clusterv1.DeleteMachineAnnotation]
	}
	return model.Instance{UID: w.place(instance), Going: instance.GetDeletionTimestamp() != nil, DeleteAnnotation: annotated}
}

// place decides which of several equivalent instances the provider takes; it differs for each seed.
func (w *simulation) place(instance *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %d", instance.GetUID(), w.mode.seed)
}

// report reports the existing instances.
func (w *simulation) report(group *unstructured.Unstructured, pool string) {
	var ids []any
	instances := w.instancesOf(pool)
	for _, instance := range instances {
		if id := providerID(instance); id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		must(unstructured.SetNestedSlice(group.Object, ids, "spec", "providerIDList"))
	} else {
		unstructured.RemoveNestedField(group.Object, "spec", "providerIDList")
	}
	group.Object["status"] = map[string]any{
		"infrastructureMachineKind": instanceKind,
		"initialization":            map[string]any{"provisioned": true},
		"replicas":                  int64(len(instances)),
	}
	w.server.put(group)
}

// instances is the cloud: an instance gets a provider ID and then a Node, or it fails; a deleted
// one is removed.
func (w *simulation) instances() {
	w.server.actor = "infrastructure"
	for _, name := range sortedNames(w.server.head[instanceKind]) {
		instance := w.instance(name)
		deleted := instance.GetDeletionTimestamp()
		switch {
		case deleted == nil:
			if w.holds == nil || !w.holds() {
				w.bootInstance(instance)
			}
		case w.keeps != nil && w.keeps() || w.clock.Since(deleted.Time)-w.mode.slowness(name) < toEnd:
		default:
			instance = instance.DeepCopy()
			instance.SetFinalizers(nil)
			w.server.put(instance)
		}
	}
}

// bootInstance does the next step of an instance.
func (w *simulation) bootInstance(instance *unstructured.Unstructured) {
	name, id := instance.GetName(), providerID(instance)
	machine := w.machine(name)
	age := w.clock.Since(instance.GetCreationTimestamp().Time) - w.mode.slowness(name)
	_, joined := w.server.head["Node"][name]
	switch {
	case id == "" && w.fails != nil && machine != nil && w.fails(machine):
		instance = instance.DeepCopy()
		must(unstructured.SetNestedField(instance.Object, "InsufficientInstanceCapacity", "status", "failed"))
		w.server.put(instance)
	case id == "" && age >= toProviderID:
		instance = instance.DeepCopy()
		must(unstructured.SetNestedField(instance.Object, w.newProviderID(name), "spec", "providerID"))
		w.server.put(instance)
	case id != "" && age >= toNode && !joined && (machine == nil || !machine.Status.NodeRef.IsDefined()) && w.mayJoin(id) && !w.isOut(connection.Workload):
		pool := w.server.head["MachinePool"][instance.GetLabels()[clusterv1.MachinePoolNameLabel]].(*clusterv1.MachinePool)
		w.server.put(newNode(name, id, pool.Spec.FailureDomains[0]))
	}
}

func newInstance(pool, name string) *unstructured.Unstructured {
	instance := &unstructured.Unstructured{Object: map[string]any{"apiVersion": infrastructureGroup + "/v1", "kind": instanceKind, "spec": map[string]any{}}}
	instance.SetNamespace(prod.Namespace)
	instance.SetName(name)
	instance.SetLabels(map[string]string{clusterv1.ClusterNameLabel: prod.Name, clusterv1.MachinePoolNameLabel: pool})
	instance.SetFinalizers([]string{infrastructureGroup + "/instance"})
	return instance
}

func providerID(instance *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(instance.Object, "spec", "providerID")
	return id
}

// group returns a copy of an infrastructure's machine pool; nil if there is none.
func (w *simulation) group(name string) *unstructured.Unstructured {
	if object, found := w.server.head[groupKind][name]; found {
		return object.(*unstructured.Unstructured).DeepCopy()
	}
	return nil
}

// instance returns an instance; nil if there is none. It is not to be modified.
func (w *simulation) instance(name string) *unstructured.Unstructured {
	if object, found := w.server.head[instanceKind][name]; found {
		return object.(*unstructured.Unstructured)
	}
	return nil
}

// instancesOf returns the instances of a MachinePool, by name. They are not to be
// modified.
func (w *simulation) instancesOf(pool string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, name := range sortedNames(w.server.head[instanceKind]) {
		if instance := w.instance(name); instance.GetLabels()[clusterv1.MachinePoolNameLabel] == pool {
			found = append(found, instance)
		}
	}
	return found
}
