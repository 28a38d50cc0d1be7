// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"maps"
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// outcome is the objects at the end, and the numbers of created ones. A created object that does
// not exist has been deleted, so equal outcomes have equal numbers of creations and of deletions.
type outcome struct {
	made  map[string]int
	state []string
	// replicas are those of all resources.
	replicas int
	// failed, unclaimed, nodeless and expired are those of the ledger.
	failed, unclaimed, nodeless, expired int
}

// unusedMore returns how many Machines more than in another run were not used: a run can have fewer of one sort, and more
// of the other.
func (o outcome) unusedMore(than outcome) int {
	return max(0, o.unclaimed-than.unclaimed) + max(0, o.nodeless-than.nodeless)
}

// outcome returns the outcome without differences between equivalent objects: names, UIDs and
// times.
func (w *simulation) outcome() outcome {
	made := map[string]int{}
	for _, kind := range []string{"NodeClaim", "MachineDeployment", "MachineSet", "MachinePool", groupKind, instanceKind, "Machine"} {
		made[kind] = w.made(kind)
	}
	var objects []string
	for _, claim := range w.claims() {
		conditions := claim.StatusConditions()
		objects = append(objects, fmt.Sprintf("NodeClaim zone=%s launched=%t registered=%t id=%s deleting=%t hashes=%s finalizers=%v", claim.Labels[corev1.LabelTopologyZone],
			conditions.Get(karpv1.ConditionTypeLaunched).IsTrue(), conditions.Get(karpv1.ConditionTypeRegistered).IsTrue(),
			w.kindOfID(claim), !claim.DeletionTimestamp.IsZero(), claim.Annotations[v1alpha1.MachineHashesAnnotation], claim.Finalizers))
	}
	for _, name := range sortedNames(w.server.head["MachineDeployment"]) {
		deployment, set := w.deployment(name), setOf(w.server.head, name)
		objects = append(objects, fmt.Sprintf("MachineDeployment zone=%s replicas=%d MachineSet=%d annotations=%v", deployment.Labels[v1alpha1.ZoneLabel],
			lo.FromPtr(deployment.Spec.Replicas), lo.FromPtr(set.Spec.Replicas), ours(deployment.Annotations)))
	}
	for _, name := range sortedNames(w.server.head["MachinePool"]) {
		pool := w.server.head["MachinePool"][name].(*clusterv1.MachinePool)
		objects = append(objects, fmt.Sprintf("MachinePool zones=%v replicas=%d instances=%d annotations=%v", pool.Spec.FailureDomains,
			lo.FromPtr(pool.Spec.Replicas), len(w.instancesOf(name)), ours(pool.Annotations)))
	}
	for _, m := range w.machines() {
		_, serves := w.serves(m)
		objects = append(objects, fmt.Sprintf("Machine zone=%s serves=%t node=%t deleting=%t annotations=%v", m.Labels[v1alpha1.ZoneLabel],
			serves, m.Status.NodeRef.IsDefined(), !m.DeletionTimestamp.IsZero(), ours(m.Annotations)))
	}
	for _, name := range sortedNames(w.server.head["Node"]) {
		if w.clusterEnds() {
			break // they end with the workload cluster
		}
		node := w.server.head["Node"][name].(*corev1.Node)
		objects = append(objects, fmt.Sprintf("Node registered=%s taints=%d deleting=%t finalizers=%v", node.GetLabels()[karpv1.NodeRegisteredLabelKey], len(node.Spec.Taints), !node.GetDeletionTimestamp().IsZero(), node.GetFinalizers()))
	}
	for _, name := range sortedNames(w.server.head[w.scaling.base]) {
		object := w.server.head[w.scaling.base][name]
		objects = append(objects, fmt.Sprintf("%s generated=%t unused=%t owners=%d", w.scaling.base, object.GetLabels()[v1alpha1.TemplateLabel] != "", name == unusedCopy, len(object.GetOwnerReferences())))
	}
	for _, o := range w.template().Status.UnavailableOfferings {
		objects = append(objects, fmt.Sprintf("unavailable zone=%s reason=%s failures=%d", o.Zone, o.Reason, o.Failures))
	}
	slices.Sort(objects)
	replicas := 0
	for _, kind := range []string{"MachineDeployment", "MachinePool"} {
		for name := range w.server.head[kind] {
			replicas += w.replicasNow(name)
		}
	}
	return outcome{made: made, state: objects, replicas: replicas, failed: w.ledger.failed, unclaimed: w.ledger.unclaimed,
		nodeless: w.ledger.nodeless, expired: w.ledger.expired}
}

// kindOfID returns the kind of a claim's provider ID.
func (w *simulation) kindOfID(claim *karpv1.NodeClaim) string {
	if claim.Status.ProviderID == planner.ProvisionalID(claim.UID) {
		return "provisional"
	}
	for _, m := range w.machines() {
		if m.Spec.ProviderID == claim.Status.ProviderID && claimUID(m) == claim.UID {
			return "own"
		}
	}
	return "unknown"
}

// ours returns the annotations that this operator or Cluster API acts on. The time at which
// replicas were lowered no longer matters.
func ours(annotations map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(annotations)), func(key string) bool {
		return key == touchedAnnotation || key == v1alpha1.ReplicasLoweredAtAnnotation
	})
}

// checkSettled checks that nothing is written in a settled simulation, not even by a new process.
func (w *simulation) checkSettled() {
	if w.jumped > 0 {
		w.renewTimes()
	}
	version := w.server.version
	w.process = nil
	for range 10 {
		w.round()
	}
	if w.server.version > version {
		w.fail("settled, but a new process still writes")
	}
	for _, claim := range w.claims() {
		own := lo.CountBy(w.machines(), func(m *clusterv1.Machine) bool { return claimUID(m) == claim.UID && !leaving(m) })
		if own != 1 {
			w.fail("settled: %s has %d Machines", claim.Name, own)
		}
	}
	for _, m := range w.machines() {
		if _, serves := w.serves(m); !serves && !w.own[m.Name] {
			w.fail("settled: Machine %s serves no claim", m.Name)
		}
		if instances := w.server.head[instanceKind]; len(instances) > 0 && instances[m.Name] == nil {
			w.fail("settled: Machine %s has no instance", m.Name)
		}
	}
}

// describe describes a change in one line.
func describe(c *change) string {
	verb, object := "changes", c.after
	switch {
	case c.before == nil:
		verb = "creates"
	case c.after == nil:
		return fmt.Sprintf("%s %s is removed", c.kind, c.name)
	case c.before.GetDeletionTimestamp() == nil && c.after.GetDeletionTimestamp() != nil:
		verb = "deletes"
	}
	text := fmt.Sprintf("%s %s %s", verb, c.kind, c.name)
	switch o := object.(type) {
	case *karpv1.NodeClaim:
		conditions := o.StatusConditions()
		text += fmt.Sprintf(" (%s) id=%q launched=%t registered=%t zone=%s", o.UID, o.Status.ProviderID,
			conditions.Get(karpv1.ConditionTypeLaunched).IsTrue(), conditions.Get(karpv1.ConditionTypeRegistered).IsTrue(), o.Labels[corev1.LabelTopologyZone])
	case *clusterv1.Machine:
		text += fmt.Sprintf(" claim=%q id=%q node=%t leaving=%t", claimUID(o), o.Spec.ProviderID, o.Status.NodeRef.IsDefined(), leaving(o))
	case *clusterv1.MachineDeployment:
		text += fmt.Sprintf(" replicas=%d", lo.FromPtr(o.Spec.Replicas))
	case *clusterv1.MachinePool:
		text += fmt.Sprintf(" replicas=%d ids=%d", lo.FromPtr(o.Spec.Replicas), len(o.Spec.ProviderIDList))
	case *unstructured.Unstructured:
		text += fmt.Sprintf(" spec=%v status=%v", o.Object["spec"], o.Object["status"])
	case *clusterv1.MachineSet:
		text += fmt.Sprintf(" replicas=%d machines=%d observed=%t", lo.FromPtr(o.Spec.Replicas), lo.FromPtr(o.Status.Replicas), o.Status.ObservedGeneration == o.Generation)
	}
	return text
}
