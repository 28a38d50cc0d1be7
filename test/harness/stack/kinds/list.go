// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// generated selects what the operator has generated, without the templates that it was generated from.
var generated = client.HasLabels{v1alpha1.TemplateLabel}

// Resource is a scalable resource.
type Resource struct {
	metav1.ObjectMeta
	Kind     Kind
	Replicas int
	// Infrastructure is the name of the object that its machines are created from.
	Infrastructure string
}

// Resources returns the scalable resources of all kinds, by name.
func Resources(ctx context.Context, c client.Reader) ([]Resource, error) {
	deployments, pools := &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{}
	err := errors.Join(c.List(ctx, deployments), c.List(ctx, pools))
	var found []Resource
	add := func(kind Kind, meta metav1.ObjectMeta, replicas *int32, template *clusterv1.MachineTemplateSpec) {
		found = append(found, Resource{meta, kind, int(ptr.Deref(replicas, 0)), template.Spec.InfrastructureRef.Name})
	}
	for i := range deployments.Items {
		add(MachineDeployment, deployments.Items[i].ObjectMeta, deployments.Items[i].Spec.Replicas, &deployments.Items[i].Spec.Template)
	}
	for i := range pools.Items {
		add(MachinePool, pools.Items[i].ObjectMeta, pools.Items[i].Spec.Replicas, &pools.Items[i].Spec.Template)
	}
	slices.SortFunc(found, func(a, b Resource) int { return cmp.Compare(a.Name, b.Name) })
	return found, err
}

// Infrastructure is an object that the operator has generated for the infrastructure provider: a
// SimulatedMachineTemplate for MachineDeployments, or the SimulatedMachinePool of a MachinePool.
type Infrastructure struct {
	metav1.ObjectMeta
	Spec infrav1.SimulatedMachineSpec
}

// Base returns the name of the template that it was generated from.
func (i *Infrastructure) Base() string {
	return i.Annotations[clusterv1.TemplateClonedFromNameAnnotation]
}

// Infrastructures returns the generated objects of all kinds, by name. Copies of templates of pools should not exist,
// but they are included if they do.
func Infrastructures(ctx context.Context, c client.Reader) ([]Infrastructure, error) {
	templates, pools, copies := &infrav1.SimulatedMachineTemplateList{}, &infrav1.SimulatedMachinePoolList{}, &infrav1.SimulatedMachinePoolTemplateList{}
	err := errors.Join(c.List(ctx, templates, generated), c.List(ctx, pools, generated), c.List(ctx, copies, generated))
	var found []Infrastructure
	for i := range templates.Items {
		found = append(found, Infrastructure{templates.Items[i].ObjectMeta, templates.Items[i].Spec.Template.Spec})
	}
	for i := range pools.Items {
		found = append(found, Infrastructure{pools.Items[i].ObjectMeta, pools.Items[i].Spec.SimulatedMachineSpec})
	}
	for i := range copies.Items {
		found = append(found, Infrastructure{copies.Items[i].ObjectMeta, copies.Items[i].Spec.Template.Spec.SimulatedMachineSpec})
	}
	slices.SortFunc(found, func(a, b Infrastructure) int { return cmp.Compare(a.Name, b.Name) })
	return found, err
}
