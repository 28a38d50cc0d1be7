// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// newPattern returns a MachineDeployment with the base template and the version of driftWorld.
func newPattern() *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "pattern"}}
	deployment.Spec.Template.Labels = map[string]string{"team": "platform"}
	deployment.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: "served", Version: "v1.36.3",
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "workers"},
	}
	return deployment
}

// follow lets the template of driftWorld follow newPattern, which was examined.
func (w *driftWorld) follow(t *testing.T) {
	t.Helper()
	if err := w.Create(t.Context(), newPattern()); err != nil {
		t.Fatal(err)
	}
	w.edit(t, func(template *v1alpha1.KarpenterMachineTemplate) {
		resolved := template.DeepCopy()
		resolved.Spec.Template.Spec = pattern.Observe(newPattern()).Spec
		template.Spec.Template = v1alpha1.MachineTemplate{From: &v1alpha1.MachineTemplateSource{MachineDeployment: "pattern"}}
		template.Status.ObservedCapacity = []v1alpha1.ObservedCapacity{{
			InstanceType: "large", Revision: catalog.RevisionOf(resolved), Nodes: 2, Capacity: corev1.ResourceList{"memory": resource.MustParse("15Gi")},
		}}
	})
	w.examined(t)
}

// examined writes what the machinetemplate controller writes after it has examined the pattern.
func (w *driftWorld) examined(t *testing.T) {
	t.Helper()
	deployment, template := newPattern(), &v1alpha1.KarpenterMachineTemplate{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Fatal(err)
	}
	w.get(t, "general", template)
	template.Status.From = &pattern.Observe(deployment).ObservedMachineTemplate
	template.StatusConditions().SetTrue(v1alpha1.ConditionFromReady)
	w.update(t, template)
}

// A MachineDeployment that a template follows is an input only once it was examined. Until then, and while it cannot be
// used, nothing is launched, no Node drifts, and the instance types stay.
func TestWhatATemplateFollows(t *testing.T) {
	type world = *driftWorld
	change := func(do func(*clusterv1.MachineDeployment)) func(*testing.T, world) {
		return func(t *testing.T, w world) {
			deployment := newPattern()
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
				t.Fatal(err)
			}
			do(deployment)
			w.update(t, deployment)
		}
	}
	older := change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.2" })
	replicas := change(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = new(int32(3)) })
	generated := change(func(d *clusterv1.MachineDeployment) { d.Labels = map[string]string{v1alpha1.TemplateLabel: "other"} })
	base := func(t *testing.T, w world) { w.editBase(t, "ami-2") }
	gone := func(t *testing.T, w world) {
		if err := w.Delete(t.Context(), newPattern()); err != nil {
			t.Fatal(err)
		}
	}
	reported := func(t *testing.T, w world) {
		template := &v1alpha1.KarpenterMachineTemplate{}
		w.get(t, "general", template)
		template.Status.From = nil
		template.StatusConditions().SetFalse(v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceNotFound, "x")
		w.update(t, template)
	}
	examined := func(t *testing.T, w world) { w.examined(t) }
	again := func(t *testing.T, w world) {
		if err := w.Create(t.Context(), newPattern()); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		changes []func(*testing.T, world)
		drift   cloudprovider.DriftReason
		// waits reports whether a NodeClaim waits for its launch, and fails whether it fails.
		waits, fails bool
		unlearned    bool // what Nodes of another version reported does not count
	}{
		"examined":                     {},
		"its base changes":             {changes: []func(*testing.T, world){base}, drift: v1alpha1.DriftInfrastructure},
		"its replicas, and its base":   {changes: []func(*testing.T, world){replicas, base}, drift: v1alpha1.DriftInfrastructure},
		"its version changes":          {changes: []func(*testing.T, world){older}, waits: true},
		"its version and base change":  {changes: []func(*testing.T, world){older, base}, waits: true},
		"its version was examined":     {changes: []func(*testing.T, world){older, examined}, drift: v1alpha1.DriftVersion, unlearned: true},
		"it is deleted":                {changes: []func(*testing.T, world){base, gone}, waits: true},
		"it is deleted, and reported":  {changes: []func(*testing.T, world){base, gone, reported}, fails: true},
		"it is a generated one":        {changes: []func(*testing.T, world){base, generated}, waits: true},
		"it exists again":              {changes: []func(*testing.T, world){gone, again}},
		"it exists again, after that":  {changes: []func(*testing.T, world){gone, reported, again}, fails: true},
		"it was examined again, too":   {changes: []func(*testing.T, world){gone, reported, again, examined}},
		"another template, then again": {changes: []func(*testing.T, world){older, change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.3" })}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDriftWorld(t)
			w.follow(t)
			created, err := w.provider.Create(t.Context(), waiting())
			if err != nil {
				t.Fatal(err)
			}
			w.claim.Annotations = created.Annotations
			before := w.instanceTypes(t)
			for _, change := range tc.changes {
				change(t, w)
			}
			if got, err := w.provider.IsDrifted(t.Context(), w.claim); err != nil || got != tc.drift {
				t.Errorf("got drift %q and %v, want %q", got, err, tc.drift)
			}
			_, err = w.provider.Create(t.Context(), waiting())
			if notReady := cloudprovider.IsNodeClassNotReadyError(err); notReady != tc.fails || (err != nil && !notReady) != tc.waits {
				t.Errorf("Create returns %v: want that the NodeClaim fails: %t, or waits: %t", err, tc.fails, tc.waits)
			}
			if diff := cmp.Diff(before, w.instanceTypes(t)); diff != "" && !tc.unlearned {
				t.Errorf("the instance types (-want +got):\n%s", diff)
			}
		})
	}
}

// instanceTypes returns the names of the instance types with their memory and offerings.
func (w *driftWorld) instanceTypes(t *testing.T) []string {
	t.Helper()
	pool := &karpv1.NodePool{}
	pool.Spec.Template.Spec.NodeClassRef = nodeClassRef
	types, err := w.provider.GetInstanceTypes(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	got := lo.Map(types, func(i *cloudprovider.InstanceType, _ int) string {
		return i.Name + " " + i.Capacity.Memory().String() + " " + lo.Ternary(len(i.Offerings.Available()) == len(i.Offerings), "available", "not available")
	})
	slices.Sort(got)
	return got
}
