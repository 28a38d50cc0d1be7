// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// tolerance is the share of the declared capacity by which Nodes can differ from it.
const tolerance = 0.05

// setCapacityAccurate learns the capacity of instance types from their Nodes, and reports
// types whose declared capacity differs by more than the tolerance. What was learned stays while the template is Pending,
// because its revision is unknown.
func (r *Reconciler) setCapacityAccurate(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	if pattern.Pending(template) {
		return nil
	}
	types, err := r.types(ctx, template)
	if err != nil {
		return err
	}
	declared := declaredBy(template, types)
	revision := catalog.RevisionOf(template)
	reports, err := r.reports(ctx, template, revision)
	if err != nil {
		return err
	}
	template.Status.ObservedCapacity = learn(template.Status.ObservedCapacity, reports, declared, revision)
	template.Status.ObservedDevices = learnDevices(template.Status.ObservedDevices, reports, types, revision)
	conditions := template.StatusConditions()
	texts := append(inaccuracies(template.Status.ObservedCapacity, declared), wrongDevices(template.Status.ObservedDevices, types)...)
	if len(texts) > 0 {
		conditions.SetFalse(v1alpha1.ConditionCapacityAccurate, v1alpha1.ReasonCapacityDiffers,
			"Karpenter uses the capacity that Nodes report, because it differs from the declared one: "+strings.Join(texts, "; "))
	} else {
		conditions.SetTrue(v1alpha1.ConditionCapacityAccurate)
	}
	return nil
}

// types returns the instance types of a template by their names.
func (r *Reconciler) types(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (map[string]*catalog.Type, error) {
	types, _, err := r.catalog.Types(ctx, template)
	return lo.SliceToMap(types, func(t catalog.Type) (string, *catalog.Type) { return t.Name, &t }), err
}

// declaredBy returns a function that returns one of the types without learned capacity.
func declaredBy(template *v1alpha1.KarpenterMachineTemplate, types map[string]*catalog.Type) func(string) *cloudprovider.InstanceType {
	unlearned := &v1alpha1.KarpenterMachineTemplate{Spec: v1alpha1.KarpenterMachineTemplateSpec{Kubelet: template.Spec.Kubelet}}
	return func(name string) *cloudprovider.InstanceType {
		if types[name] == nil {
			return nil
		}
		built, _ := catalog.Build(unlearned, []catalog.Type{*types[name]})
		return lo.FirstOrEmpty(built)
	}
}

// reports returns the reports of the template's Nodes of its current revision. Karpenter has
// initialized them, so they have all their resources.
func (r *Reconciler) reports(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, revision string) ([]report, error) {
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		return nil, err
	}
	var reports []report
	for i := range claims {
		claim := &claims[i]
		if !catalog.IsRevision(claim.Annotations[v1alpha1.TemplateRevisionAnnotation], revision) || !nodeclaims.ConditionOf(claim, karpv1.ConditionTypeInitialized).IsTrue() {
			continue
		}
		node, err := r.nodeOf(ctx, claim)
		if err != nil {
			return nil, err
		}
		if node == nil {
			continue
		}
		volumes, err := r.volumes(ctx, node.Name)
		if err != nil {
			return nil, err
		}
		devices, err := r.devices(ctx, node.Name)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report{catalog.KeyOf(claim).InstanceType, node.Status.Capacity, node.Status.Allocatable, volumes, devices})
	}
	return reports, nil
}

// differs reports whether an observed quantity is not the declared one. Resources that are
// not declared do not count, because Karpenter cannot request them.
func differs(observed, declared corev1.ResourceList) bool {
	for name, quantity := range observed {
		if expected, is := declared[name]; is && quantity.Cmp(expected) != 0 {
			return true
		}
	}
	return false
}

// inaccuracies returns a text for each resource that differs by more than the tolerance.
func inaccuracies(observed []v1alpha1.ObservedCapacity, declared func(string) *cloudprovider.InstanceType) []string {
	var texts []string
	for _, o := range observed {
		t := declared(o.InstanceType)
		if t == nil || o.Nodes == 0 {
			continue
		}
		for _, name := range learnable {
			found, is := o.Capacity[name]
			expected, was := t.Capacity[name]
			if is && was && math.Abs(found.AsApproximateFloat64()-expected.AsApproximateFloat64()) > tolerance*expected.AsApproximateFloat64() {
				texts = append(texts, fmt.Sprintf("%s of %s: declared %s, observed %s", name, o.InstanceType, expected.String(), found.String()))
			}
		}
		texts = append(texts, wrongVolumes(o, t.VolumeAttachmentLimits)...)
	}
	return texts
}

const (
	// rare is the share of the Nodes of a type that can have less than the learned capacity:
	// one of five. Karpenter must not plan Pods that do not fit on most Nodes, and one broken
	// memory module among many must not shrink the type.
	rare = 5
	// steady is the share by which a learned value can be lower than what Nodes report now
	// without being replaced, because each change rebuilds the instance types.
	steady = 0.01
)

// learnable are the resources that are learned, because they are hard to know in advance.
var learnable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}

// report is what one Node reports.
type report struct {
	instanceType          string
	capacity, allocatable corev1.ResourceList
	// volumes are how many volumes of each CSI driver can be attached, by the name of the driver.
	volumes map[string]int32
	// devices are those that DRA drivers publish.
	devices catalog.Devices
}

// learn returns the capacity of the instance types that differ from their declaration, by
// name. It learns from the Nodes that exist and, for types without Nodes, from what is
// stored for the revision. The order of the reports does not matter.
func learn(stored []v1alpha1.ObservedCapacity, reports []report, declared func(string) *cloudprovider.InstanceType, revision string) []v1alpha1.ObservedCapacity {
	known := map[string]v1alpha1.ObservedCapacity{}
	for _, o := range stored {
		if catalog.IsRevision(o.Revision, revision) {
			known[o.InstanceType] = o
		}
	}
	reports = lo.Filter(reports, func(r report, _ int) bool {
		return len(typical(learnable, nil, []corev1.ResourceList{r.capacity, r.allocatable})) > 0
	})
	seen := lo.GroupBy(reports, func(r report) string { return r.instanceType })
	var learned []v1alpha1.ObservedCapacity
	for _, name := range lo.Union(lo.Keys(known), lo.Keys(seen)) {
		o := observe(known[name], seen[name])
		o.InstanceType, o.Revision = name, revision
		if t := declared(name); t != nil && (differs(o.Capacity, t.Capacity) || differs(o.Allocatable, t.Allocatable()) || volumesDiffer(o.VolumeAttachmentLimits, t.VolumeAttachmentLimits)) {
			learned = append(learned, o)
		}
	}
	// If there are too many, those that Karpenter does not use are left out first.
	byName := func(a, b v1alpha1.ObservedCapacity) int { return cmp.Compare(a.InstanceType, b.InstanceType) }
	slices.SortFunc(learned, func(a, b v1alpha1.ObservedCapacity) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), byName(a, b)) })
	// The maximum of the CRD, 1000, has no room in the budget.
	learned = learned[:budget.Fit(learned, budget.Observed)]
	slices.SortFunc(learned, byName)
	return learned
}

// observe returns the capacity of one type. If only one Node has reported it, Karpenter does
// not use it after that Node is deleted, because the Node can have been broken. It is kept,
// because otherwise the next Node of a type that is often scaled to zero would always be
// planned too large: when a second Node reports the same, it counts permanently.
func observe(known v1alpha1.ObservedCapacity, reports []report) v1alpha1.ObservedCapacity {
	if len(reports) == 0 {
		if known.Nodes == 1 {
			known.Nodes = 0
		}
		return known
	}
	capacity := typical(learnable, known.Capacity, lo.Map(reports, func(r report, _ int) corev1.ResourceList { return r.capacity }))
	allocatable := typical(learnable, known.Allocatable, lo.Map(reports, func(r report, _ int) corev1.ResourceList { return r.allocatable }))
	now := v1alpha1.ObservedCapacity{Capacity: capacity, Allocatable: allocatable, VolumeAttachmentLimits: typicalVolumes(known, reports), Nodes: 1}
	if len(reports) > 1 || known.Nodes != 1 && alike(known.Capacity, capacity) && alike(known.Allocatable, allocatable) {
		now.Nodes = 2
	}
	return now
}

// typical returns the quantity of each of the named resources that most Nodes have.
func typical(names []corev1.ResourceName, known corev1.ResourceList, lists []corev1.ResourceList) corev1.ResourceList {
	result := corev1.ResourceList{}
	for _, name := range names {
		// A Node that does not have the resource yet reports nothing.
		values := lo.FilterMap(lists, func(list corev1.ResourceList, _ int) (resource.Quantity, bool) {
			quantity := list[name]
			return quantity, quantity.Sign() > 0
		})
		if len(values) == 0 {
			continue
		}
		most := ofMost(values)
		if before := known[name]; before.Cmp(most) <= 0 && within(before, most, steady) {
			most = before
		}
		result[name] = most.DeepCopy()
	}
	return result
}

// ofMost returns the smallest of the quantities, without those that are rare and much smaller.
func ofMost(quantities []resource.Quantity) resource.Quantity {
	slices.SortFunc(quantities, func(a, b resource.Quantity) int { return a.Cmp(b) })
	reference := quantities[len(quantities)/rare]
	least, _ := lo.Find(quantities, func(q resource.Quantity) bool { return within(q, reference, tolerance) })
	return least
}

// within reports whether a quantity is below another one by at most a share of the other.
func within(quantity, other resource.Quantity, share float64) bool {
	return quantity.AsApproximateFloat64() >= (1-share)*other.AsApproximateFloat64()
}

// alike reports whether two lists have the same resources, within the tolerance. No quantity is zero.
func alike(a, b corev1.ResourceList) bool {
	return len(a) == len(b) && lo.EveryBy(lo.Keys(a), func(name corev1.ResourceName) bool {
		return within(a[name], b[name], tolerance) && within(b[name], a[name], tolerance)
	})
}
