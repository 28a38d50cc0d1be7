// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// cached is a cluster with the cache of one template, which copies like controller-runtime's.
type cached struct {
	cluster.Cluster
	client.Client
	template *v1alpha1.KarpenterMachineTemplate
}

func (c *cached) GetClient() client.Client { return c }

// Get implements client.Reader.
func (c *cached) Get(_ context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if c.template == nil || key.Name != c.template.Name {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "karpentermachinetemplates"}, key.Name)
	}
	given := (&client.GetOptions{}).ApplyOptions(options)
	if given.UnsafeDisableDeepCopy != nil && *given.UnsafeDisableDeepCopy {
		*into.(*v1alpha1.KarpenterMachineTemplate) = *c.template
		return nil
	}
	c.template.DeepCopyInto(into.(*v1alpha1.KarpenterMachineTemplate))
	return nil
}

// A large template is copied once for each of its versions, and not for each call.
func TestSharedTemplate(t *testing.T) {
	stored := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "1", ResourceVersion: "1"}}
	stored.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "md"}
	stored.Status.From = &v1alpha1.ObservedMachineTemplate{MachineDeployment: "md", Spec: v1alpha1.MachineTemplateSpec{
		Version: "v1.36.3", InfrastructureRef: &clusterv1.ContractVersionedObjectReference{Name: "x"},
	}}
	for i := range 800 {
		stored.Spec.InstanceTypes = append(stored.Spec.InstanceTypes, v1alpha1.InstanceType{Name: fmt.Sprint(i), Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}}}})
	}
	workload := &cached{template: stored}
	clusters := &Clusters{Workload: workload}
	get := func() *v1alpha1.KarpenterMachineTemplate {
		t.Helper()
		template, err := clusters.SharedTemplate(t.Context(), "general")
		if err != nil {
			t.Fatal(err)
		}
		return template
	}
	first := get()
	if first.Spec.Template.Spec.Version != "v1.36.3" || stored.Spec.Template.Spec.Version != "" {
		t.Errorf("got version %q, and %q in the cache: want it resolved, and the cache unchanged", first.Spec.Template.Spec.Version, stored.Spec.Template.Spec.Version)
	}
	if allocations := testing.AllocsPerRun(10, func() { get() }); allocations > 20 {
		t.Errorf("a template that has not changed takes %v allocations", allocations)
	}
	version := first.ResourceVersion
	first.StatusConditions()
	if len(stored.Status.Conditions) > 0 || get() != first || first.ResourceVersion != version {
		t.Error("reading conditions changes the template in the cache")
	}
	for name, change := range map[string]func(*v1alpha1.KarpenterMachineTemplate){
		"another version":                   func(t *v1alpha1.KarpenterMachineTemplate) { t.ResourceVersion = "2" },
		"another template of the same name": func(t *v1alpha1.KarpenterMachineTemplate) { t.UID = "2" },
	} {
		before := get()
		workload.template = workload.template.DeepCopy()
		change(workload.template)
		if got := get(); got == before || got.UID != workload.template.UID || got.ResourceVersion != workload.template.ResourceVersion {
			t.Errorf("%s: got the one before", name)
		}
	}
	workload.template = nil
	if got := get(); got != nil {
		t.Error("got a template that does not exist")
	}
}
