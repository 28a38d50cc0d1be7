// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

// machineDeployments is Cluster API's controller of MachineDeployments: each has one MachineSet,
// which gets its replicas.
func (w *simulation) machineDeployments() {
	w.server.actor = "MachineDeployment"
	sees, consistent := w.capiSees("MachineSet")
	if !consistent {
		return
	}
	for _, name := range sortedNames(sees["MachineDeployment"]) {
		deployment := sees["MachineDeployment"][name].DeepCopyObject().(*clusterv1.MachineDeployment)
		set := setOf(sees, name)
		if !deployment.DeletionTimestamp.IsZero() {
			w.endDeployment(deployment, set)
			continue
		}
		if set == nil {
			set = newMachineSet(deployment, suffix(w.server.objects))
			w.server.put(set)
		}
		before := lo.FromPtr(set.Spec.Replicas)
		if after := model.MachineDeployment(lo.FromPtr(deployment.Spec.Replicas), before, lo.FromPtr(set.Status.Replicas)); after != before {
			current := w.server.head["MachineSet"][set.Name].DeepCopyObject().(*clusterv1.MachineSet)
			current.Spec.Replicas = &after
			w.server.put(current)
		}
		deployment.Status.Replicas = lo.ToPtr(lo.FromPtr(set.Status.Replicas))
		deployment.Status.ObservedGeneration = deployment.Generation
		if current, found := w.server.head["MachineDeployment"][name].DeepCopyObject().(*clusterv1.MachineDeployment); found {
			current.Status, current.Finalizers = deployment.Status, []string{clusterv1.MachineDeploymentFinalizer}
			w.server.put(current)
		}
	}
}

// newMachineSet returns the MachineSet of a MachineDeployment.
func newMachineSet(deployment *clusterv1.MachineDeployment, suffix string) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: prod.Namespace, Name: deployment.Name + "-" + suffix, Labels: maps.Clone(deployment.Spec.Template.Labels),
			Finalizers: []string{clusterv1.MachineSetFinalizer},
		},
		Spec: clusterv1.MachineSetSpec{ClusterName: prod.Name, Template: *deployment.Spec.Template.DeepCopy()},
	}
	set.Labels[clusterv1.MachineSetNameLabel] = set.Name
	set.Spec.Template.Labels = lo.Assign(set.Spec.Template.Labels, map[string]string{clusterv1.MachineSetNameLabel: set.Name})
	set.Spec.Replicas = lo.ToPtr[int32](0)
	return set
}

// machineSets is Cluster API's controller of MachineSets.
func (w *simulation) machineSets() {
	w.server.actor = "MachineSet"
	sees, consistent := w.capiSees("Machine")
	if !consistent {
		return
	}
	for _, name := range sortedNames(sees["MachineSet"]) {
		set := sees["MachineSet"][name].DeepCopyObject().(*clusterv1.MachineSet)
		own := machinesOf(sees, name)
		if !set.DeletionTimestamp.IsZero() {
			w.endSet(set, own)
			continue
		}
		create, remove := model.MachineSet(lo.FromPtr(set.Spec.Replicas), w.blocked, lo.Map(own, modelOf))
		w.noteCreation(clients.ResourceOf(set), lo.Map(own, func(m *clusterv1.Machine, _ int) string { return m.Name }), w.alive(clients.ResourceOf(set)), min(int(create), w.machineLimit-len(own)))
		for range min(int(create), w.machineLimit-len(own)) {
			w.server.put(newMachine(set, set.Name+"-"+suffix(w.server.objects)))
		}
		for _, name := range remove {
			if machine := w.machine(name); machine != nil {
				w.noteRemoval(machine, sees)
				must(w.live().Delete(context.Background(), machine))
			}
		}
		w.syncMetadata(set, machinesOf(sees, name))
		set.Status.Replicas = lo.ToPtr(int32(len(machinesOf(sees, name))))
		set.Status.ObservedGeneration = set.Generation
		w.reportScalingUp(set, len(own))
		current := w.server.head["MachineSet"][name].DeepCopyObject().(*clusterv1.MachineSet)
		current.Status = set.Status
		w.server.put(current)
	}
}

// newMachine returns a Machine of a MachineSet.
func newMachine(set *clusterv1.MachineSet, name string) *clusterv1.Machine {
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: prod.Namespace, Name: name,
			Labels: maps.Clone(set.Spec.Template.Labels), Annotations: maps.Clone(set.Spec.Template.Annotations),
			Finalizers: []string{clusterv1.MachineFinalizer},
		},
		Spec: set.Spec.Template.Spec,
	}
	machine.Spec.InfrastructureRef.Kind, machine.Spec.InfrastructureRef.Name = strings.TrimSuffix(infrastructureKind, clusterv1.TemplateSuffix), machine.Name
	return machine
}

// reportScalingUp sets the condition ScalingUp of a MachineSet that had the given number of
// Machines when it acted (core/reconcilers/machineset/machineset_controller_status.go,
// setScalingUpCondition).
func (w *simulation) reportScalingUp(set *clusterv1.MachineSet, machines int) {
	condition := metav1.Condition{Type: clusterv1.MachineSetScalingUpCondition, Status: metav1.ConditionFalse,
		Reason: clusterv1.MachineSetNotScalingUpReason, LastTransitionTime: metav1.NewTime(w.clock.Now())}
	if replicas := int(lo.FromPtr(set.Spec.Replicas)); machines < replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, clusterv1.MachineSetScalingUpReason
		condition.Message = fmt.Sprintf("Scaling up from %d to %d replicas", machines, replicas)
		if w.blocked {
			condition.Message += " is blocked because:\n* the control plane is upgrading"
		}
	}
	if known := conditions.Get(set, condition.Type); known != nil && known.Status == condition.Status {
		condition.LastTransitionTime = known.LastTransitionTime
	}
	conditions.Set(set, condition)
}

// syncMetadata gives the Machines of a MachineSet the labels and annotations of its template, as
// the MachineSet controller does all the time, except for those that are being deleted
// (core/reconcilers/machineset/machineset_controller.go, syncMachines).
func (w *simulation) syncMetadata(set *clusterv1.MachineSet, own []*clusterv1.Machine) {
	for _, seen := range own {
		machine := w.machine(seen.Name)
		if machine == nil || !seen.DeletionTimestamp.IsZero() {
			continue
		}
		if lacks(machine.Labels, set.Spec.Template.Labels) || lacks(machine.Annotations, set.Spec.Template.Annotations) {
			machine = machine.DeepCopy()
			machine.Labels = lo.Assign(machine.Labels, set.Spec.Template.Labels)
			machine.Annotations = lo.Assign(machine.Annotations, set.Spec.Template.Annotations)
			w.server.put(machine)
		}
	}
}

func lacks(all, some map[string]string) bool {
	for key, value := range some {
		if got, found := all[key]; !found || got != value {
			return true
		}
	}
	return false
}

// modelOf returns what a MachineSet reads from a Machine.
func modelOf(m *clusterv1.Machine, _ int) model.Machine {
	_, chosen := m.Annotations[clusterv1.DeleteMachineAnnotation]
	return model.Machine{Name: m.Name, Created: m.CreationTimestamp.Time, Deleting: !m.DeletionTimestamp.IsZero(),
		DeleteAnnotation: chosen, Healthy: m.Status.NodeRef.IsDefined()}
}

// suffix returns five characters that look random, so that names do not tell the
// order of creation.
func suffix(number int) string {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "machine %d", number)
	sum, text := hash.Sum64(), ""
	for range 5 {
		text += string("bcdfghjklmnpqrstvwxz2456789"[sum%27])
		sum /= 27
	}
	return text
}
