// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/doctor"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

type condition = status.Condition

// sound are the edits that leave nothing wrong in the world.
var sound = []edit{
	without[*karpv1.NodePool]("gpu"), without[*v1alpha1.KarpenterMachineTemplate]("gpu"), without[*karpv1.NodePool]("small"),
	named("general", func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.Conditions = t.Status.Conditions[:1] }),
}

// Each check finds its mistake, names the object and says what to do, and finds nothing in a sound installation.
func TestDoctor(t *testing.T) {
	for name, tc := range map[string]struct {
		edits []edit
		// check and object are those of the only finding.
		check, object, message string
		level                  doctor.Level
	}{
		"nothing":               {},
		"the operator stopped":  {edits: []edit{named("karpenter-leader-election", func(l *coordinationv1.Lease) { l.Spec.RenewTime.Time = fixture.Noon.Add(-time.Hour) })}, check: "Operator", object: "Lease/karpenter-leader-election", message: "no operator has renewed Lease karpenter/karpenter-leader-election since 2026-01-01 11:00:00 UTC", level: doctor.Problem},
		"there is no lease":     {edits: []edit{without[*coordinationv1.Lease]("karpenter-leader-election")}, check: "Operator", object: "Lease/karpenter-leader-election", level: doctor.Warning},
		"the Cluster is paused": {edits: []edit{named("prod", func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })}, check: "Cluster", object: "Cluster/prod", level: doctor.Warning},
		"a template does not exist": {
			edits: []edit{named("general", func(p *karpv1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "nowhere" })},
			check: "NodePools", object: "NodePool/general", message: "KarpenterMachineTemplate nowhere does not exist", level: doctor.Problem,
		},
		"a NodePool is full": {
			edits: []edit{named("general", func(p *karpv1.NodePool) { p.Status.Resources = corev1.ResourceList(p.Spec.Limits) })},
			check: "NodePools", object: "NodePool/general", message: "its limit of cpu is 100", level: doctor.Warning,
		},
		"the Cluster lacks a zone": {
			edits: []edit{named("general", func(t *v1alpha1.KarpenterMachineTemplate) {
				t.StatusConditions().SetFalse(v1alpha1.ConditionOfferingsValid, v1alpha1.ReasonZonesUnknown, "the Cluster has no failure domain us-east-1c")
				t.Status.Conditions = lo.Filter(t.Status.Conditions, func(c condition, _ int) bool { return c.Type == v1alpha1.ConditionOfferingsValid || c.IsTrue() })
			})},
			check: "Templates", object: "KarpenterMachineTemplate/general", message: "OfferingsValid=ZonesUnknown: the Cluster has no failure domain us-east-1c", level: doctor.Warning,
		},
		"a catalog is wrong": {
			edits: []edit{named("types", func(c *v1alpha1.InstanceTypeCatalog) {
				c.Status.Conditions = []condition{{Type: v1alpha1.ConditionInstanceTypesValid, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInstanceTypesInvalid, Message: "m5.large has no CPU"}}
			})},
			check: "Catalogs", object: "InstanceTypeCatalog/types", message: "m5.large has no CPU", level: doctor.Warning,
		},
		"cluster-autoscaler scales, too": {
			edits: []edit{named("general-m5-large-1a", func(d *clusterv1.MachineDeployment) {
				d.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "0"}
			})},
			check: "Replicas", object: "MachineDeployment clusters/general-m5-large-1a", message: "it has the annotation", level: doctor.Problem,
		},
		"a provider ID is shared": {
			edits: []edit{named("general-boots", func(c *karpv1.NodeClaim) { c.Status.ProviderID = "aws:///us-east-1a/i-4" })},
			check: "Links", object: "NodeClaim/general-boots", message: "of NodeClaim general-tainted", level: doctor.Problem,
		},
		"a Machine is missing": {
			edits: []edit{without[*clusterv1.Machine]("m-1")},
			check: "Links", object: "NodeClaim/general-runs", message: "it has a Node, and no Machine", level: doctor.Problem,
		},
		"a provider ID has changed": {
			edits: []edit{named("m-1", func(m *clusterv1.Machine) { m.Spec.ProviderID = "aws:///us-east-1a/i-9" })},
			check: "Links", object: "NodeClaim/general-runs", message: "that of its Machine m-1 is aws:///us-east-1a/i-9", level: doctor.Problem,
		},
		"Karpenter manages all Nodes": {
			edits: []edit{without[*corev1.Node]("node-0")},
			check: "Room", object: "Node", level: doctor.Warning,
		},
		"the only other Node is cordoned": {
			edits: []edit{named("node-0", func(n *corev1.Node) { n.Spec.Unschedulable = true })},
			check: "Room", object: "Node", level: doctor.Warning,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, messages, code := runIn(t, world(t, append(sound, tc.edits...)...), "doctor", "-o", "json")
			if want := lo.Ternary(tc.level == doctor.Problem, 1, 0); code != want {
				t.Errorf("exit code %d, want %d: %s", code, want, messages)
			}
			var results []doctor.Result
			if err := json.Unmarshal([]byte(out), &results); err != nil {
				t.Fatal(err)
			}
			findings := lo.FlatMap(results, func(r doctor.Result, _ int) []doctor.Finding { return r.Findings })
			if tc.check == "" {
				if len(findings) > 0 {
					t.Errorf("found %+v in a sound installation", findings)
				}
				return
			}
			if len(findings) != 1 || findings[0].Check != tc.check || findings[0].Object != tc.object || findings[0].Level != tc.level ||
				!strings.Contains(findings[0].Message, tc.message) || findings[0].Do == "" {
				t.Errorf("found %+v, want one %s of check %s about %s with the message %q, and what to do", findings, tc.level, tc.check, tc.object, tc.message)
			}
		})
	}
}

// A MachineHealthCheck that deletes Machines before Karpenter gives up on them is found. One that waits, or that selects
// other Machines, is not.
func TestDoctorHealthChecks(t *testing.T) {
	check := func(timeout *int32, selector map[string]string) client.Object {
		check := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "workers"}}
		check.Spec.ClusterName = fixture.Served.Name
		check.Spec.Selector.MatchLabels = selector
		check.Spec.Checks.NodeStartupTimeoutSeconds = timeout
		return check
	}
	of := map[string]string{clusterv1.MachineDeploymentNameLabel: "general-m5-large-1a"}
	for name, tc := range map[string]struct {
		check client.Object
		found bool
	}{
		"ten minutes by default": {check(nil, of), true},
		"ten minutes":            {check(new(int32(600)), of), true},
		"fifteen minutes":        {check(new(int32(900)), of), false},
		"never":                  {check(new(int32(0)), of), false},
		"other Machines":         {check(nil, map[string]string{clusterv1.MachineControlPlaneLabel: ""}), false},
	} {
		t.Run(name, func(t *testing.T) {
			from := world(t, sound...)
			clusters, err := from.connect(t.Context(), nil)
			if err == nil {
				err = clusters.Management.GetClient().Create(t.Context(), tc.check)
			}
			if err != nil {
				t.Fatal(err)
			}
			out, messages, code := runIn(t, from, "doctor")
			if code != 0 || strings.Contains(out, "MachineHealthCheck/workers") != tc.found {
				t.Errorf("exit code %d, want 0, and that the check is found: %t\n%s%s", code, tc.found, out, messages)
			}
		})
	}
}
