// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func claimOf(name string, change func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
	claim := fixture.Claim(time.Minute)
	claim.Name, claim.UID = name, types.UID(name)
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: "KarpenterMachineTemplate", Name: "general"}
	claim.Labels = map[string]string{
		karpv1.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyZone: "us-east-1a", karpv1.CapacityTypeLabelKey: "spot",
	}
	claim.Annotations = map[string]string{v1alpha1.PriceAnnotation: "0.5"}
	if change != nil {
		change(claim)
	}
	return claim
}

func machineOf(name, claim string, change func(*clusterv1.Machine)) *clusterv1.Machine {
	machine := fixture.Machine(time.Minute)
	machine.Namespace, machine.Name, machine.UID = fixture.Served.Namespace, name, types.UID(name)
	machine.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
	if claim != "" {
		machine.Labels[v1alpha1.NodeClaimUIDLabel] = claim
	}
	if change != nil {
		change(machine)
	}
	return machine
}

func marked(machine *clusterv1.Machine) {
	machine.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: fixture.Noon.Format(time.RFC3339)}
}

// clustersWith returns clusters with objects, and with the index that a catalog needs.
func clustersWith(objects ...client.Object) *clients.Clusters {
	both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).Build()}
	return &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
}

// seriesOf returns the series of a collector, without those of the connections, sorted.
func seriesOf(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	var names []string
	for _, definition := range metrics.All() {
		names = append(names, definition.Name)
	}
	text, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain, names...)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#") || strings.HasPrefix(line, "karpenter_capi_cache_age")
	})
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestCollect(t *testing.T) {
	template := fixture.Template()
	template.Status.Offerings, template.Status.AvailableOfferings = 10, 4
	template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{
		{InstanceType: "a", Reason: "QuotaExceeded", Until: metav1.NewTime(fixture.Noon.Add(time.Minute))},
		{InstanceType: "b", Reason: "QuotaExceeded", Until: metav1.NewTime(fixture.Noon.Add(-time.Minute))},
	}
	template.Status.InvalidOfferings = []v1alpha1.InvalidOfferings{{Reason: "PatchesFailed", Count: 2}}
	clusters := clustersWith(template, fixture.Catalog(),
		claimOf("linked", nil), claimOf("waits", nil), claimOf("loses", nil),
		claimOf("old", func(claim *karpv1.NodeClaim) { claim.Labels[karpv1.CapacityTypeLabelKey] = "reserved" }),
		claimOf("other", func(claim *karpv1.NodeClaim) { claim.Spec.NodeClassRef.Kind = "Other" }),
		machineOf("linked", "linked", nil), machineOf("old", "old", nil), machineOf("spare", "", nil), machineOf("unlinked", "gone", nil),
		machineOf("leaving", "loses", marked), machineOf("foreign", "", func(machine *clusterv1.Machine) { machine.Labels = nil }),
	)
	known := catalog.New(clusters)
	if _, err := known.Refresh(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	c := NewController(clusters, known, clocktesting.NewFakePassiveClock(fixture.Noon), true)
	if got := testutil.CollectAndCount(c); got != 2 {
		t.Errorf("got %d series before this process leads, want the 2 of the connections", got)
	}
	c.leads.Store(true)
	// The claim whose offering the template has no longer costs what it did at its launch.
	if diff := cmp.Diff(strings.TrimSpace(`
karpenter_capi_machines{state="leaving",template="general"} 1
karpenter_capi_machines{state="linked",template="general"} 2
karpenter_capi_machines{state="spare",template="general"} 1
karpenter_capi_machines{state="unlinked",template="general"} 1
karpenter_capi_nodeclaims_price{capacity_type="reserved",nodepool="default",template="general",zone="us-east-1a"} 0.5
karpenter_capi_nodeclaims_price{capacity_type="spot",nodepool="default",template="general",zone="us-east-1a"} 0.10500000000000001
karpenter_capi_nodeclaims_waiting{template="general"} 2
karpenter_capi_offering_price{capacity_type="on-demand",instance_type="m5.large",template="general",zone="us-east-1a"} 0.096
karpenter_capi_offering_price{capacity_type="spot",instance_type="m5.large",template="general",zone=""} 0.03
karpenter_capi_offering_price{capacity_type="spot",instance_type="m5.large",template="general",zone="us-east-1a"} 0.035
karpenter_capi_offerings{available="false",reason="Other",template="general"} 3
karpenter_capi_offerings{available="false",reason="PatchesFailed",template="general"} 2
karpenter_capi_offerings{available="false",reason="QuotaExceeded",template="general"} 1
karpenter_capi_offerings{available="true",reason="",template="general"} 4
`), seriesOf(t, c)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestFailuresAreCountedOnce(t *testing.T) {
	with := func(change func(*karpv1.NodeClaim)) *karpv1.NodeClaim { return claimOf("c", change) }
	plain := with(nil)
	failed := with(func(claim *karpv1.NodeClaim) {
		claim.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, "QuotaExceeded", "no quota")
	})
	stalled := with(func(claim *karpv1.NodeClaim) {
		claim.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonBlocked, "preflight")
	})
	resumed := with(func(claim *karpv1.NodeClaim) {
		claim.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonResumed, "")
	})
	metrics.Forget("general")
	for _, change := range [][2]*karpv1.NodeClaim{{plain, stalled}, {stalled, stalled}, {stalled, resumed}, {resumed, failed}, {failed, failed}} {
		countFailures(change[0], change[1])
	}
	if got := testutil.ToFloat64(metrics.LaunchFailures.WithLabelValues("general", "QuotaExceeded")); got != 1 {
		t.Errorf("counted %v failures, want 1", got)
	}
	if got := testutil.ToFloat64(metrics.LaunchStalls.WithLabelValues("general", v1alpha1.ReasonBlocked)); got != 1 {
		t.Errorf("counted %v stalls, want 1", got)
	}
	metrics.Forget("general")
	if left := testutil.CollectAndCount(metrics.LaunchFailures) + testutil.CollectAndCount(metrics.LaunchStalls); left != 0 {
		t.Errorf("%d series of a removed template remain", left)
	}
}
