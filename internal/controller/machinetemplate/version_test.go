// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"slices"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The template has the version of the control plane, and is not Ready with one that does not fit.
func TestVersionReady(t *testing.T) {
	for name, tc := range map[string]struct {
		version string
		skips   bool // the bootstrap template has the annotation that turns the checks of Cluster API off
		want    string
		reason  string
		ready   bool
	}{
		"none":                                 {want: "v1.36.3", reason: v1alpha1.ReasonVersionOfControlPlane, ready: true},
		"an older one":                         {version: "v1.35.0", want: "v1.35.0", reason: v1alpha1.ReasonVersionSet, ready: true},
		"a newer minor version":                {version: "v1.37.0", want: "v1.37.0", reason: v1alpha1.ReasonVersionSkew},
		"a newer minor version, and no checks": {version: "v1.37.0", skips: true, want: "v1.37.0", reason: v1alpha1.ReasonVersionSet, ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			template := newTemplate()
			template.Spec.Template.Spec.Version = tc.version
			kind := infrastructureKind
			kind.Group, kind.Kind = "controlplane.cluster.x-k8s.io", "TestControlPlane"
			crd := named(infrastructureKind, "testcontrolplanes.controlplane.cluster.x-k8s.io")
			crd.SetAPIVersion("apiextensions.k8s.io/v1")
			crd.SetKind("CustomResourceDefinition")
			crd.SetNamespace("")
			crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
			controlPlane := named(kind, "served")
			controlPlane.Object["spec"], controlPlane.Object["status"] = map[string]any{"version": "v1.36.3"}, map[string]any{"version": "v1.36.3"}
			c := newCell(template, crd, controlPlane)
			if tc.skips {
				template.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "TestConfigTemplate", Name: "bootstrap"}}
				bootstrap := named(schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "TestConfigTemplate"}, "bootstrap")
				ofBootstrap := crd.DeepCopy()
				ofBootstrap.SetName("testconfigtemplates.bootstrap.cluster.x-k8s.io")
				bootstrap.SetAnnotations(map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: string(clusterv1.MachineSetPreflightCheckAll)})
				c = newCell(template, crd, controlPlane, ofBootstrap, bootstrap)
			}
			cluster := &clusterv1.Cluster{}
			if err := c.Get(t.Context(), c.clusters.Cluster, cluster); err != nil {
				t.Fatal(err)
			}
			cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: "served"}
			if err := c.Update(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
			stored, err := c.reconcile(t, "general")
			if err != nil {
				t.Fatal(err)
			}
			condition, ready := stored.StatusConditions().Get(v1alpha1.ConditionVersionReady), stored.StatusConditions().IsTrue(status.ConditionReady)
			if stored.Status.Version != tc.want || condition.Reason != tc.reason || ready != tc.ready {
				t.Errorf("got version %s for reason %s, Ready %t; want %s for %s, %t", stored.Status.Version, condition.Reason, ready, tc.want, tc.reason, tc.ready)
			}
			if root := stored.StatusConditions().Root(); !tc.ready && !strings.Contains(root.Message, condition.Message) {
				t.Errorf("got Ready %+v, want the message %q", root, condition.Message)
			}
			if !slices.Contains(c.kinds.List(), kind) {
				t.Errorf("the kind of the control plane is not watched: %v", c.kinds.List())
			}
		})
	}
}

// A Cluster whose control plane Cluster API does not manage has no kind of it to watch.
func TestNoControlPlaneIsWatched(t *testing.T) {
	c := newCell(newTemplate())
	stored, err := c.reconcile(t, "general")
	if err != nil || !stored.StatusConditions().IsTrue(v1alpha1.ConditionVersionReady) {
		t.Errorf("got %v and %+v", err, stored.StatusConditions().Get(v1alpha1.ConditionVersionReady))
	}
	if slices.Contains(c.kinds.List(), schema.GroupVersionKind{}) {
		t.Errorf("got the kinds %v", c.kinds.List())
	}
}
