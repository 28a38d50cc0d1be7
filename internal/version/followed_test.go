// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/version"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// What a template follows is what it was resolved with. If that has changed since, nothing is decided.
func TestReadFollowed(t *testing.T) {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "prod-md-0-x7k2p", Labels: map[string]string{
		clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md-0",
	}}}
	deployment.Spec.Template.Spec.Version = "v1.36.2"
	changed, unowned := deployment.DeepCopy(), deployment.DeepCopy()
	changed.Spec.Template.Spec.Version = "v1.36.3"
	unowned.Labels = nil
	byName, byEntry := v1alpha1.MachineTemplateSource{MachineDeployment: deployment.Name}, v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"}
	of := func(topology bool) version.Followed {
		return version.Followed{MachineDeployment: deployment.Name, Version: "v1.36.2", OfTopology: topology}
	}
	for name, tc := range map[string]struct {
		from     *v1alpha1.MachineTemplateSource
		resolved *clusterv1.MachineDeployment // nil if the template is Pending
		now      *clusterv1.MachineDeployment // nil if it does not exist
		want     version.Followed
		fails    bool
	}{
		"none":                  {},
		"by name":               {from: &byName, resolved: deployment, now: deployment, want: of(true)},
		"by entry":              {from: &byEntry, resolved: deployment, now: deployment, want: of(true)},
		"not of a topology":     {from: &byName, resolved: unowned, now: unowned, want: of(false)},
		"one that has changed":  {from: &byEntry, resolved: deployment, now: changed, fails: true},
		"one that left":         {from: &byName, resolved: deployment, now: unowned, fails: true},
		"one that was deleted":  {from: &byEntry, resolved: deployment, fails: true},
		"one that is not taken": {from: &byEntry, now: deployment},
	} {
		t.Run(name, func(t *testing.T) {
			template, clusters := fixture.Template(), fixture.Clusters()
			if template.Spec.Template.From = tc.from; tc.resolved != nil {
				template.Status.From = &pattern.Observe(tc.resolved).ObservedMachineTemplate
			}
			if tc.now != nil {
				clusters = fixture.Clusters(tc.now.DeepCopy())
			}
			_, got, err := version.Read(t.Context(), clusters, template)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("got %+v and %v, want %+v and an error: %t", got, err, tc.want, tc.fails)
			}
		})
	}
}
