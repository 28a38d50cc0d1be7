// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A claim that lacks the annotation with the name of its scalable resource is not among the claims
// of that resource. Its Machine stays, and the operator restores the annotation.
func TestClaimGetsItsAnnotationsBack(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const resource = "general-small"
	with := func(keysAndValues ...string) map[string]string {
		return lo.Associate(lo.Chunk(keysAndValues, 2), func(pair []string) (string, string) { return pair[0], pair[1] })
	}
	whole := with(v1alpha1.ScalableResourceAnnotation, resource, v1alpha1.TemplateHashAnnotation, "abc")
	for name, tc := range map[string]struct {
		uid         types.UID // of the claim; that of the link if empty
		annotations map[string]string
		claimID     string
		zone        string // of the claim; that of the Machine if empty
		machineID   string
		node        bool
		registered  bool // the claim has the Node of the Machine
		// want are the annotations in the end. stays is whether the Machine keeps its link and is not marked.
		want  map[string]string
		stays bool
	}{
		"with a Node": {
			annotations: with("a", "b", v1alpha1.TemplateHashAnnotation, "abc"), claimID: "real://m", machineID: "real://m", node: true,
			want: lo.Assign(whole, with("a", "b")), stays: true,
		},
		"all annotations are lost": {claimID: "real://m", machineID: "real://m", node: true, want: whole, stays: true},
		"the annotation is empty": {
			annotations: with(v1alpha1.ScalableResourceAnnotation, ""), claimID: "real://m", machineID: "real://m", node: true, want: whole, stays: true,
		},
		"before the claim has an ID":                  {machineID: "real://m", node: true, want: whole, stays: true},
		"while the Machine boots":                     {claimID: planner.ProvisionalID("c"), want: whole, stays: true},
		"before the claim has the provider ID":        {claimID: planner.ProvisionalID("c"), machineID: "real://m", node: true, want: whole, stays: true},
		"its Machine has got another ID":              {claimID: "real://m", machineID: "real://other", node: true, registered: true, want: whole, stays: true},
		"it has another Machine":                      {claimID: "real://other", machineID: "real://m", node: true},
		"it has the offering of another Machine":      {claimID: planner.ProvisionalID("c"), zone: "b", machineID: "real://m"},
		"another claim of that name has none":         {uid: "d", claimID: planner.ProvisionalID("d"), machineID: "real://m", node: true},
		"it names another resource, and waits there":  {annotations: with(v1alpha1.ScalableResourceAnnotation, "x"), claimID: planner.ProvisionalID("c"), want: with(v1alpha1.ScalableResourceAnnotation, "x")},
		"it names another resource, and has its Node": {annotations: with(v1alpha1.ScalableResourceAnnotation, "x"), claimID: "real://m", machineID: "real://m", node: true, want: with(v1alpha1.ScalableResourceAnnotation, "x")},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &karpv1.NodeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "c", UID: lo.CoalesceOrEmpty(tc.uid, "c"), Annotations: tc.annotations, Labels: map[string]string{
					corev1.LabelInstanceTypeStable: "small", corev1.LabelTopologyZone: lo.CoalesceOrEmpty(tc.zone, "a"), karpv1.CapacityTypeLabelKey: "on-demand",
				}},
				Status: karpv1.NodeClaimStatus{ProviderID: tc.claimID},
			}
			machine := &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m", UID: "m", CreationTimestamp: metav1.NewTime(now), Labels: map[string]string{
					v1alpha1.NodeClaimUIDLabel: "c", v1alpha1.TemplateHashLabel: "abc",
					v1alpha1.InstanceTypeLabel: "small", v1alpha1.ZoneLabel: "a", v1alpha1.CapacityTypeLabel: "on-demand",
				}, Annotations: map[string]string{v1alpha1.NodeClaimAnnotation: "c"}},
				Spec: clusterv1.MachineSpec{ProviderID: tc.machineID},
			}
			if tc.node {
				machine.Status.NodeRef.Name = "n"
			}
			if tc.registered {
				claim.Status.NodeName = "n"
			}
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim, machine).Build()
			both := fixture.Cluster{Client: c}
			clusters := &clients.Clusters{Workload: both, Management: both}
			r := &Reconciler{clusters: clusters, catalog: catalog.New(clusters)}
			read := &clusterv1.Machine{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(machine), read); err != nil {
				t.Fatal(err)
			}
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: resource, Machines: map[string]*clusterv1.Machine{"m": read}, State: planner.State{Now: now}}}
			snap.Plan = planner.Decide(&planner.State{Replicas: 1, Machines: []planner.Machine{{Name: "m", Claim: "c", ProviderID: tc.machineID, HasNode: tc.node}}})
			if err := r.markAndUnlink(t.Context(), snap); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(machine), read); err != nil {
				t.Fatal(err)
			}
			if stays := !lifecycle.IsLeaving(read) && lifecycle.ClaimUID(read) == "c"; stays != tc.stays {
				t.Errorf("the Machine stays: %t, want %t", stays, tc.stays)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, claim.Annotations); diff != "" {
				t.Errorf("annotations of the claim (-want +got):\n%s", diff)
			}
		})
	}
}
