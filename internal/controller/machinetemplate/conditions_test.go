// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// What is wrong with a template is in the condition on that subject, with what to do. What prevents launches is in
// Ready, too.
func TestConditionsReportWhatIsWrong(t *testing.T) {
	type change = func(*v1alpha1.KarpenterMachineTemplate)
	unavailable := func(count int) change {
		return func(t *v1alpha1.KarpenterMachineTemplate) {
			for i := range count {
				t.Status.UnavailableOfferings = append(t.Status.UnavailableOfferings, v1alpha1.UnavailableOffering{
					InstanceType: fmt.Sprint("m", i), Zone: "a", CapacityType: "on-demand", Reason: "LaunchTimeout", Failures: 1, Until: metav1.NewTime(began.Add(time.Minute)),
				})
			}
		}
	}
	invalid := func(t *v1alpha1.KarpenterMachineTemplate) {
		t.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, EnabledIf: `{{ ne .zone "a" }}`, JSONPatches: []v1alpha1.JSONPatch{{Op: "remove", Path: "/spec/missing"}}}}
	}
	for name, tc := range map[string]struct {
		change    change
		zones     []v1alpha1.Zone
		condition string
		status    metav1.ConditionStatus
		reason    string
		message   string
		launches  bool   // whether the template stays Ready
		stays     string // another condition that stays True
	}{
		"no infrastructure template": {
			change:    func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.InfrastructureRef = nil },
			condition: v1alpha1.ConditionInfrastructureReady, status: metav1.ConditionFalse, reason: v1alpha1.ReasonReferenceMissing, message: "name an infrastructure machine template",
		},
		"an infrastructure template that does not exist": {
			change:    func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.InfrastructureRef.Name = "missing" },
			condition: v1alpha1.ConditionInfrastructureReady, status: metav1.ConditionFalse, reason: v1alpha1.ReasonReferenceNotFound, message: "missing",
		},
		"an infrastructure template of an unknown kind": {
			change: func(t *v1alpha1.KarpenterMachineTemplate) {
				t.Spec.Template.Spec.InfrastructureRef.Kind = "UnknownMachineTemplate"
			},
			condition: v1alpha1.ConditionInfrastructureReady, status: metav1.ConditionFalse, reason: v1alpha1.ReasonReferenceKindUnusable, message: "UnknownMachineTemplate",
		},
		"a bootstrap template that does not exist": {
			stays: v1alpha1.ConditionInfrastructureReady,
			change: func(t *v1alpha1.KarpenterMachineTemplate) {
				t.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureKind.Group, Kind: infrastructureKind.Kind, Name: "missing"}}
			},
			condition: v1alpha1.ConditionBootstrapReady, status: metav1.ConditionFalse, reason: v1alpha1.ReasonReferenceNotFound, message: "bootstrap.configRef",
		},
		"a bootstrap template of an unknown kind": {
			stays: v1alpha1.ConditionVersionReady,
			change: func(t *v1alpha1.KarpenterMachineTemplate) {
				t.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureKind.Group, Kind: "UnknownConfigTemplate", Name: "workers"}}
			},
			condition: v1alpha1.ConditionBootstrapReady, status: metav1.ConditionFalse, reason: v1alpha1.ReasonReferenceKindUnusable, message: "UnknownConfigTemplate",
		},
		"a Secret that is not allowed": {
			change: func(t *v1alpha1.KarpenterMachineTemplate) {
				t.Spec.Template.Spec.Bootstrap.DataSecretName = new("admin-kubeconfig")
			},
			condition: v1alpha1.ConditionBootstrapReady, status: metav1.ConditionFalse, message: "dataSecretName",
		},
		"a pattern that does not exist, for the infrastructure": {
			change: followsMissing, condition: v1alpha1.ConditionInfrastructureReady, status: metav1.ConditionUnknown, reason: v1alpha1.ReasonReferenceMissing, message: waitsForFrom,
		},
		"a pattern that does not exist, for the bootstrap": {
			change: followsMissing, condition: v1alpha1.ConditionBootstrapReady, status: metav1.ConditionUnknown, reason: v1alpha1.ReasonReferenceMissing, message: waitsForFrom,
		},
		"no instance types": {
			change:    func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.CatalogRefs = nil },
			condition: v1alpha1.ConditionInstanceTypesReady, status: metav1.ConditionFalse, reason: v1alpha1.ReasonNoInstanceTypes, message: "name an InstanceTypeCatalog in spec.catalogRefs",
		},
		"a discovery that finds nothing": {
			stays: v1alpha1.ConditionInfrastructureReady,
			change: func(t *v1alpha1.KarpenterMachineTemplate) {
				t.Spec.CatalogRefs, t.Spec.Template.Spec.InfrastructureRef = nil, nil
				t.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"discover": "yes"}}}}
			},
			condition: v1alpha1.ConditionInstanceTypesReady, status: metav1.ConditionFalse, reason: v1alpha1.ReasonNoInstanceTypes, message: "finds nothing",
		},
		"a catalog that does not exist": {
			change: func(t *v1alpha1.KarpenterMachineTemplate) {
				t.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: "missing"}}
			},
			condition: v1alpha1.ConditionInstanceTypesReady, status: metav1.ConditionFalse, message: "missing",
		},
		"an unavailable offering": {
			change: unavailable(1), condition: v1alpha1.ConditionOfferingsAvailable, status: metav1.ConditionFalse, reason: v1alpha1.ReasonOfferingsUnavailable,
			message: "Karpenter does not choose these offerings: m0/a/on-demand until 2026-01-01T00:01:00Z (LaunchTimeout: )", launches: true,
		},
		"more unavailable offerings than are named": {
			change: unavailable(maxNamed + 2), condition: v1alpha1.ConditionOfferingsAvailable, status: metav1.ConditionFalse, reason: v1alpha1.ReasonOfferingsUnavailable,
			message: "; and 2 more", launches: true,
		},
		"an offering that cannot be generated": {
			change: invalid, zones: []v1alpha1.Zone{"a", "b"}, condition: v1alpha1.ConditionOfferingsValid, status: metav1.ConditionFalse, message: "offering m5/b/on-demand: ", launches: true,
		},
		"two of them": {
			change: invalid, zones: []v1alpha1.Zone{"a", "b", "c"}, condition: v1alpha1.ConditionOfferingsValid, status: metav1.ConditionFalse, message: "2 offerings, such as m5/b/on-demand", launches: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := newTemplate()
			tc.change(template)
			stored, err := newCell(template, newCatalog(tc.zones...)).reconcile(t, template.Name)
			if err != nil {
				t.Fatal(err)
			}
			got := stored.StatusConditions().Get(tc.condition)
			if got == nil || got.Status != tc.status || tc.reason != "" && got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Fatalf("got %+v, want %s with reason %s and %q", got, tc.status, tc.reason, tc.message)
			}
			if other := stored.StatusConditions().Get(tc.stays); tc.stays != "" && !other.IsTrue() {
				t.Errorf("got %+v, want that it stays True", other)
			}
			ready := stored.StatusConditions().Get(status.ConditionReady)
			if ready.IsTrue() != tc.launches || tc.status == metav1.ConditionFalse && !tc.launches && !strings.Contains(ready.Message, got.Message) {
				t.Errorf("got Ready %+v, want it True: %t", ready, tc.launches)
			}
		})
	}
}

// followsMissing lets a template follow a MachineDeployment that does not exist.
func followsMissing(t *v1alpha1.KarpenterMachineTemplate) {
	t.Spec.Template.Spec.InfrastructureRef = nil
	t.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "missing"}
}

// A status is not written over another one, and the reconcile of a template that no longer exists ends.
func TestStatusOfAChangedTemplate(t *testing.T) {
	c := newCell(newTemplate())
	stored, err := c.reconcile(t, "general")
	if err != nil {
		t.Fatal(err)
	}
	stale := stored.DeepCopy()
	stored.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{InstanceType: "m5", Zone: "a", CapacityType: "on-demand", Reason: "LaunchTimeout", Until: metav1.NewTime(began)}}
	if err := c.Status().Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	// The list of finalizers is replaced as a whole, too.
	unfinished := stale.DeepCopy()
	unfinished.Finalizers = nil
	if err := c.ensureFinalizer(t.Context(), unfinished); !apierrors.IsConflict(err) {
		t.Errorf("the finalizer: got %v, want a conflict", err)
	}
	changed := stale.DeepCopy()
	changed.Status.AvailableOfferings = 99
	c.clock.Step(countsInterval) // the number alone can be written
	if _, err := c.patchStatus(t.Context(), changed, stale); !apierrors.IsConflict(err) || len(c.published) > 0 {
		t.Errorf("got %v and events %v, want only a conflict", err, c.published)
	}
	if err := c.Get(t.Context(), types.NamespacedName{Name: "general"}, stored); err != nil || stored.Status.AvailableOfferings == 99 {
		t.Errorf("got %v and %d: the other write is overwritten", err, stored.Status.AvailableOfferings)
	}
	if again, err := c.reconcile(t, "general"); err != nil || again.Status.AvailableOfferings == 99 || len(again.Status.UnavailableOfferings) != 1 {
		t.Errorf("got %v and the status %+v", err, again.Status)
	}
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "removed"}}); err != nil {
		t.Errorf("a template that no longer exists: %v", err)
	}
}

// The status has the sum of the Machines of all resources.
func TestMachinesAreCounted(t *testing.T) {
	of := func(name string, machines int32) *clusterv1.MachineDeployment {
		d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
		d.Status.Replicas = &machines
		return d
	}
	stored, err := newCell(newTemplate(), of("a", 2), of("b", 3)).reconcile(t, "general")
	if err != nil || stored.Status.Machines != 5 || len(stored.Status.ScalableResources) != 2 || stored.Status.ScalableResources[0].Paused {
		t.Errorf("got %v, %d Machines and %+v", err, stored.Status.Machines, stored.Status.ScalableResources)
	}
}
