// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// While Cluster API replaces the MachineDeployment of an entry, a template follows the new one. The result does
// not depend on the order of the cache.
func TestFindAmongSeveral(t *testing.T) {
	old, first, second := deployment(), deployment(), deployment()
	old.Name, first.Name, second.Name = "prod-md-0-a", "prod-md-0-b", "prod-md-0-c"
	old.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	template := &v1alpha1.KarpenterMachineTemplate{}
	template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"}
	all := []clusterv1.MachineDeployment{*old, *second, *first}
	for range 2 {
		if got := Find(template, all); got.Name != "prod-md-0-b" {
			t.Errorf("got %s, want prod-md-0-b", got.Name)
		}
		slices.Reverse(all)
	}
	if got := Find(template, all[:0]); got != nil {
		t.Errorf("got %s of none", got.Name)
	}
	if got := Find(template, []clusterv1.MachineDeployment{*old}); got.Name != old.Name {
		t.Errorf("got %s, want the only one", got.Name)
	}
}

func TestProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.MachineDeployment)
		want   string // a part of it; empty for none
	}{
		"of a topology": {func(*clusterv1.MachineDeployment) {}, ""},
		"adopted":       {adopt, ""},
		"generated":     {func(d *clusterv1.MachineDeployment) { d.Labels[v1alpha1.TemplateLabel] = "general" }, "was generated from KarpenterMachineTemplate general"},
		"being deleted": {func(d *clusterv1.MachineDeployment) { d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, "is being deleted"},
		"adopted, and being deleted": {func(d *clusterv1.MachineDeployment) {
			adopt(d)
			d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment()
			tc.change(d)
			if got := Problem(d); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The status names what the template follows, and a key without a domain is nobody's.
func TestObserve(t *testing.T) {
	d := deployment()
	d.Spec.Template.Labels["karpenter.sh"] = "x"
	got := Observe(d)
	if got.MachineDeployment != "prod-md-0-x7k2p" || got.Entry != "md-0" || got.Metadata.Labels["karpenter.sh"] != "x" {
		t.Errorf("got %+v", got)
	}
	delete(d.Labels, clusterv1.ClusterTopologyOwnedLabel)
	if got := Observe(d); got.Entry != "" {
		t.Errorf("got entry %s of a MachineDeployment that no topology owns", got.Entry)
	}
}

// A template has its own bootstrap, or that of its pattern.
func TestBootstrapOfItsOwn(t *testing.T) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "md-0"}
	template.Spec.Template.Spec.Bootstrap.ConfigRef = ref("ConfigTemplate", "own")
	observed := Observe(deployment())
	template.Status.From = &observed.ObservedMachineTemplate
	Resolve(template, observed)
	if got := template.Spec.Template.Spec.Bootstrap.ConfigRef.Name; got != "own" {
		t.Errorf("got bootstrap template %s, want own", got)
	}
}
