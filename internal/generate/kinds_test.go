// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A launch uses no base of a kind that generates no Machines, whatever the CustomResourceDefinition of templates
// allows: administrators of the workload cluster can change that.
func TestBasesOfOtherKinds(t *testing.T) {
	const infrastructure, bootstrap = "infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io"
	type ref = clusterv1.ContractVersionedObjectReference
	clusters := []client.Object{}
	for group, kinds := range map[string][]string{
		"cluster.x-k8s.io":              {"MachineDeployment"},
		"controlplane.cluster.x-k8s.io": {"TestControlPlaneTemplate"},
		infrastructure:                  {"TestMachineTemplate", "TestClusterTemplate"},
		bootstrap:                       {"TestConfigTemplate"},
	} {
		for _, kind := range kinds {
			crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", strings.ToLower(kind)+"s."+group, nil)
			crd.SetLabels(map[string]string{clusterv1.GroupVersion.String(): "v1beta2"})
			clusters = append(clusters, crd, object(group+"/v1beta2", kind, fixture.Served.Namespace, "workers", map[string]any{"template": map[string]any{}}))
		}
	}
	for name, tc := range map[string]struct {
		infrastructure, bootstrap ref
		want                      string
	}{
		"those of workers":                 {ref{APIGroup: infrastructure, Kind: "TestMachineTemplate"}, ref{APIGroup: bootstrap, Kind: "TestConfigTemplate"}, ""},
		"a MachineDeployment":              {ref{APIGroup: "cluster.x-k8s.io", Kind: "MachineDeployment"}, ref{}, "kind MachineDeployment is of API group cluster.x-k8s.io, which is not that of a provider"},
		"a MachineDeployment as bootstrap": {ref{}, ref{APIGroup: "cluster.x-k8s.io", Kind: "MachineDeployment"}, "spec.template.spec.bootstrap.configRef: kind MachineDeployment is of API group cluster.x-k8s.io"},
		"a template of a Cluster":          {ref{APIGroup: infrastructure, Kind: "TestClusterTemplate"}, ref{}, "is no template of machines"},
		"a template of a control plane":    {ref{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "TestControlPlaneTemplate"}, ref{}, "is of API group controlplane.cluster.x-k8s.io"},
		"bootstrap data as infrastructure": {ref{APIGroup: bootstrap, Kind: "TestConfigTemplate"}, ref{}, "is of API group bootstrap.cluster.x-k8s.io"},
		"infrastructure as bootstrap data": {ref{}, ref{APIGroup: infrastructure, Kind: "TestMachineTemplate"}, "is of API group infrastructure.cluster.x-k8s.io"},
	} {
		t.Run(name, func(t *testing.T) {
			template := fixture.Template()
			spec := &template.Spec.Template.Spec
			tc.infrastructure.Name, tc.bootstrap.Name = "workers", "workers"
			spec.InfrastructureRef, spec.Bootstrap.ConfigRef = &tc.infrastructure, tc.bootstrap
			if tc.infrastructure.Kind == "" {
				spec.InfrastructureRef = nil
			}
			if tc.bootstrap.Kind == "" {
				spec.Bootstrap.ConfigRef = ref{}
			}
			bases, err := ReadBases(t.Context(), fixture.Clusters(clusters...), template)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if tc.want == "" && (bases.Infrastructure == nil || bases.Bootstrap == nil) {
				t.Errorf("got %+v", bases)
			}
		})
	}
}

// The template of the control plane's machines is no base of workers.
func TestBaseOfTheControlPlane(t *testing.T) {
	e := newExamining(t)
	if _, err := ReadBases(t.Context(), e.clusters, e.template); err != nil {
		t.Fatal(err)
	}
	e.edit(t, "TestControlPlane", "controlplane.cluster.x-k8s.io", "cp", func(spec map[string]any) {
		spec["machineTemplate"] = map[string]any{"spec": map[string]any{"infrastructureRef": map[string]any{
			"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachineTemplate", "name": "workers",
		}}}
	})
	refused := tenancy.NotAllowed{}
	if _, err := ReadBases(t.Context(), e.clusters, e.template); !errors.As(err, &refused) || refused.Reason != v1alpha1.ReasonBaseTemplateNotAllowed {
		t.Errorf("got %v, want that the base template is not allowed", err)
	}
}
