// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
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
	declared, err := r.declared(ctx, template)
	if err != nil {
		return err
	}
	revision := catalog.RevisionOf(template)
	reports, err := r.reports(ctx, template, revision)
	if err != nil {
		return err
	}
	template.Status.ObservedCapacity = learn(template.Status.ObservedCapacity, reports, declared, revision)
	conditions := template.StatusConditions()
	if texts := inaccuracies(template.Status.ObservedCapacity, declared); len(texts) > 0 {
		conditions.SetFalse(v1alpha1.ConditionCapacityAccurate, v1alpha1.ReasonCapacityDiffers,
			"Karpenter uses the capacity that Nodes report, because it differs from the declared one: "+strings.Join(texts, "; "))
	} else {
		conditions.SetTrue(v1alpha1.ConditionCapacityAccurate)
	}
	return nil
}

// declared returns a function that returns an instance type without learned capacity.
func (r *Reconciler) declared(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (func(string) *cloudprovider.InstanceType, error) {
	types, _, err := r.catalog.Types(ctx, template)
	if err != nil {
		return nil, err
	}
	index := lo.SliceToMap(types, func(t catalog.Type) (string, *catalog.Type) { return t.Name, &t })
	unlearned := &v1alpha1.KarpenterMachineTemplate{Spec: v1alpha1.KarpenterMachineTemplateSpec{Kubelet: template.Spec.Kubelet}}
	return func(name string) *cloudprovider.InstanceType {
		if index[name] == nil {
			return nil
		}
		built, _ := catalog.Build(unlearned, []catalog.Type{*index[name]})
		return lo.FirstOrEmpty(built)
	}, nil
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
		node := &corev1.Node{}
		if err := r.clusters.Workload.GetClient().Get(ctx, types.NamespacedName{Name: claim.Status.NodeName}, node, client.UnsafeDisableDeepCopy); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, fmt.Errorf("getting Node %s of NodeClaim %s: %w", claim.Status.NodeName, claim.Name, err)
		}
		reports = append(reports, report{catalog.KeyOf(claim).InstanceType, node.Status.Capacity, node.Status.Allocatable})
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
	}
	return texts
}
