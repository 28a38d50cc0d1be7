// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Every template gets the finalizer, except one that is being deleted.
func TestFinalizerIsAdded(t *testing.T) {
	const others = "example.com/finalizer"
	for name, tc := range map[string]struct {
		finalizers []string
		deleting   bool
		want       []string
	}{
		"a new template":                             {want: []string{v1alpha1.TerminationFinalizer}},
		"one of an older version":                    {finalizers: []string{others}, want: []string{others, v1alpha1.TerminationFinalizer}},
		"one that has it":                            {finalizers: []string{v1alpha1.TerminationFinalizer}, want: []string{v1alpha1.TerminationFinalizer}},
		"one that is being deleted":                  {finalizers: []string{others}, deleting: true, want: []string{others}},
		"one that is being deleted and still has it": {finalizers: []string{v1alpha1.TerminationFinalizer}, deleting: true, want: []string{v1alpha1.TerminationFinalizer}},
	} {
		t.Run(name, func(t *testing.T) {
			template := newTemplate()
			template.Finalizers = tc.finalizers
			if tc.deleting {
				template.DeletionTimestamp = new(metav1.NewTime(began))
			}
			stored, err := newCell(template).reconcile(t, "general")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, stored.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			if ready := stored.StatusConditions().Get(status.ConditionReady); ready.IsTrue() == tc.deleting {
				t.Errorf("got %+v, want Ready: %t", ready, !tc.deleting)
			}
			if deletable := stored.StatusConditions().Get(v1alpha1.ConditionDeletable); (deletable != nil) != tc.deleting {
				t.Errorf("got %+v, want it only while the template is being deleted", deletable)
			}
		})
	}
}

// A template that is being deleted is not Ready, and shows what its deletion waits for.
func TestDeletable(t *testing.T) {
	claims := func(count int) []client.Object {
		var objects []client.Object
		for i := range count {
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", i), UID: types.UID(fmt.Sprint(i))}}
			claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
			objects = append(objects, claim)
		}
		return objects
	}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "general-1", Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
	for name, tc := range map[string]struct {
		objects []client.Object
		reason  string
		message string
		events  []string
	}{
		"with NodeClaims": {
			objects: append(claims(7), deployment), reason: v1alpha1.ReasonNodeClaimsRemain, events: []string{"WaitingOnNodeClaimTermination"},
			message: "the template is being deleted and waits for 7 NodeClaims: delete the NodePools that use it, or let them use another template. The NodeClaims are c0, c1, c2, c3, c4 and 2 more",
		},
		"with scalable resources": {
			objects: []client.Object{deployment}, reason: v1alpha1.ReasonGeneratedObjectsRemain,
			message: "the template is being deleted and waits for what was generated from it: if that takes longer than a minute, look whether the Cluster or these objects are paused. These are MachineDeployment fleet/general-1",
		},
		"with nothing but copies": {
			reason:  v1alpha1.ReasonGeneratedObjectsRemain,
			message: "the template is being deleted and waits for the copies of its base templates: if that takes longer than a minute, look for finalizers on the objects of the management cluster with the label karpenter.cluster.x-k8s.io/template=general",
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := newTemplate()
			template.Finalizers, template.DeletionTimestamp = []string{v1alpha1.TerminationFinalizer}, new(metav1.NewTime(began))
			c := newCell(append(tc.objects, template)...)
			stored, err := c.reconcile(t, "general")
			if err != nil {
				t.Fatal(err)
			}
			for _, condition := range []string{v1alpha1.ConditionDeletable, status.ConditionReady} {
				got := stored.StatusConditions().Get(condition)
				if diff := cmp.Diff([]string{"False", tc.reason, tc.message}, []string{string(got.Status), got.Reason, got.Message}); diff != "" {
					t.Errorf("%s (-want +got):\n%s", condition, diff)
				}
			}
			if diff := cmp.Diff(tc.events, c.published); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			again, err := c.reconcile(t, "general")
			if err != nil || again.ResourceVersion != stored.ResourceVersion {
				t.Errorf("the second reconcile has written; error: %v", err)
			}
		})
	}
}

// What the deletion of a template waits for comes first in Ready, before what else is wrong.
func TestDeletionOfATemplateWithMistakes(t *testing.T) {
	template := newTemplate()
	template.Finalizers, template.DeletionTimestamp = []string{v1alpha1.TerminationFinalizer}, new(metav1.NewTime(began))
	template.Spec.Template.Spec.InfrastructureRef.Name = "missing"
	stored, err := newCell(template).reconcile(t, "general")
	if err != nil {
		t.Fatal(err)
	}
	ready := stored.StatusConditions().Get(status.ConditionReady)
	if ready.Reason != v1alpha1.ReasonGeneratedObjectsRemain || !strings.HasPrefix(ready.Message, "the template is being deleted") || !strings.Contains(ready.Message, "TestMachineTemplate fleet/missing does not exist") {
		t.Errorf("got %+v", ready)
	}
}
