// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// published are the reasons of the events that were published.
type published []string

func (p *published) Publish(all ...events.Event) {
	for _, e := range all {
		*p = append(*p, e.Reason)
	}
}

// A claim whose Node never joined marks its offering once, before its Machine is marked, also if the process ends in between.
func TestUnjoinedNodesMarkTheirOffering(t *testing.T) {
	claim := fixture.Claim(15 * time.Minute)
	claim.Spec.NodeClassRef = nodeClassRef
	claim.Labels = map[string]string{corev1.LabelInstanceTypeStable: "small", corev1.LabelTopologyZone: "a", karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand}
	claim.Finalizers, claim.DeletionTimestamp = []string{karpv1.TerminationFinalizer}, new(metav1.NewTime(fixture.Noon))
	claim.Status.ProviderID = "real://m"
	machine := fixture.OfMachineDeployment(fixture.Machine(14 * time.Minute))
	machine.Spec.ProviderID = "real://m"
	machine.Labels[v1alpha1.NodeClaimUIDLabel], machine.Labels[v1alpha1.TemplateLabel] = string(claim.UID), "general"
	machine.Annotations = map[string]string{v1alpha1.NodeClaimAnnotation: claim.Name}
	fixture.WithCondition(machine, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionTrue, "Ready", "", fixture.Noon.Add(-13*time.Minute))
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "general"}}
	crashes := true
	api := fixture.WithJSONPatch(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithStatusSubresource(claim, template).
		WithObjects(claim, machine, template, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}).
		WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{string(lifecycle.ClaimUID(o))} }).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).Build())
	both := fixture.Cluster{Client: interceptor.NewClient(api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, is := object.(*clusterv1.Machine); is && crashes {
				return errors.New("the process ends")
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})}
	clusters := &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
	told := &published{}
	for range 3 {
		provider := New(clusters, catalog.New(clusters), clocktesting.NewFakeClock(fixture.Noon)).WithRecorder(told)
		if err := provider.Delete(t.Context(), claim); (err != nil) != crashes {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
			t.Fatal(err)
		}
		if lifecycle.IsMarked(machine) == crashes {
			t.Errorf("the Machine is marked: %t", !crashes)
		}
		crashes = false
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.UnavailableOffering{{
		InstanceType: "small", Zone: "a", CapacityType: karpv1.CapacityTypeOnDemand, Reason: v1alpha1.ReasonRegistrationTimeout, Failures: 1,
		Message: "no Node has joined with the provider ID of Machine " + machine.Name, Until: metav1.NewTime(fixture.Noon.Add(3 * time.Minute)),
	}}
	if diff := cmp.Diff(want, template.Status.UnavailableOfferings); diff != "" {
		t.Errorf("wrong marks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(published{v1alpha1.ReasonRegistrationTimeout, v1alpha1.ReasonRegistrationTimeout}, *told); diff != "" {
		t.Errorf("wrong events (-want +got):\n%s", diff)
	}
}
