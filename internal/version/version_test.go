// SPDX-License-Identifier: Apache-2.0

package version

import (
	"cmp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// templateWith returns a template with a version and a kind of bootstrap templates.
func templateWith(version, bootstrap string) *v1alpha1.KarpenterMachineTemplate {
	template := &v1alpha1.KarpenterMachineTemplate{}
	template.Spec.Template.Spec.Version = version
	template.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: bootstrap, Name: "workers"}
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: "types"}}
	return template
}

// at returns a control plane with a version, and the versions that it runs.
func at(version string, running ...string) ControlPlane {
	return ControlPlane{Name: "KubeadmControlPlane prod", Version: version, Running: running}
}

func withTopology(controlPlane ControlPlane, version string) ControlPlane {
	controlPlane.Topology = version
	return controlPlane
}

func TestOf(t *testing.T) {
	const kubeadm, other = "KubeadmConfigTemplate", "RKE2ConfigTemplate"
	for name, tc := range map[string]struct {
		given        string
		followed     string // the version of the MachineDeployment that the template follows
		unowned      bool   // it is not part of the topology
		bootstrap    string
		controlPlane ControlPlane
		skip         string
		pools        bool

		want     string
		reason   string
		problem  string // a part of it
		changing string
	}{
		"that of the control plane": {bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.36.3", reason: v1alpha1.ReasonVersionOfControlPlane},
		"a control plane without a patch version": {bootstrap: other, controlPlane: at("1.36", "1.36"),
			want: "v1.36.0", reason: v1alpha1.ReasonVersionOfControlPlane},
		"its own": {given: "v1.36.2", bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.36.2", reason: v1alpha1.ReasonVersionSet},
		"a control plane without a version": {given: "v1.36.2", bootstrap: kubeadm,
			want: "v1.36.2", reason: v1alpha1.ReasonVersionSet},
		"none, with kubeadm": {bootstrap: kubeadm,
			reason: v1alpha1.ReasonVersionMissing, problem: "set the Kubernetes version of the Machines"},
		"none": {bootstrap: other, reason: v1alpha1.ReasonVersionUnknown},

		"newer by a patch version": {given: "v1.36.4", bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.36.4", reason: v1alpha1.ReasonVersionSet},
		"newer by a minor version": {given: "v1.37.0", bootstrap: other, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.37.0", reason: v1alpha1.ReasonVersionSkew, problem: "is newer than version v1.36.3 of KubeadmControlPlane prod"},
		"newer, and not checked": {given: "v1.37.0", bootstrap: other, controlPlane: at("v1.36.3", "v1.36.3"), skip: "ControlPlaneIsStable, KubernetesVersionSkew",
			want: "v1.37.0", reason: v1alpha1.ReasonVersionSet},
		"older by three minor versions": {given: "v1.33.0", bootstrap: other, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.33.0", reason: v1alpha1.ReasonVersionSet},
		"older by four minor versions": {given: "v1.32.0", bootstrap: other, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.32.0", reason: v1alpha1.ReasonVersionSkew, problem: "more than 3 minor versions older"},
		"another minor version, with kubeadm": {given: "v1.35.9", bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.35.9", reason: v1alpha1.ReasonVersionSkew, problem: "with which kubeadm cannot join"},
		"another minor version, with kubeadm, and nothing is checked": {given: "v1.35.9", bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.3"), skip: "All",
			want: "v1.35.9", reason: v1alpha1.ReasonVersionSet},
		"another patch version, with a topology": {given: "v1.36.2", bootstrap: other, controlPlane: withTopology(at("v1.36.3", "v1.36.3"), "v1.36.3"),
			want: "v1.36.2", reason: v1alpha1.ReasonVersionSkew, problem: "which Cluster API requires in a Cluster with a topology"},
		"another patch version, with a topology, of MachinePools": {given: "v1.36.2", bootstrap: other, controlPlane: withTopology(at("v1.36.3", "v1.36.3"), "v1.36.3"), pools: true,
			want: "v1.36.2", reason: v1alpha1.ReasonVersionSet},
		"newer, of MachinePools": {given: "v1.37.0", bootstrap: other, controlPlane: at("v1.36.3", "v1.36.3"), pools: true,
			want: "v1.37.0", reason: v1alpha1.ReasonVersionSkew, problem: "is newer than"},
		"newer by a major version": {given: "v2.0.0", bootstrap: other, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v2.0.0", reason: v1alpha1.ReasonVersionSkew, problem: "is newer than"},
		"older by a major version": {given: "v1.37.0", bootstrap: other, controlPlane: at("v2.0.0", "v2.0.0"),
			want: "v1.37.0", reason: v1alpha1.ReasonVersionSkew, problem: "more than 3 minor versions older"},
		"another patch version, with a topology, and not checked": {given: "v1.36.2", bootstrap: other, controlPlane: withTopology(at("v1.36.3", "v1.36.3"), "v1.36.3"), skip: "ControlPlaneVersionSkew",
			want: "v1.36.2", reason: v1alpha1.ReasonVersionSet},
		"another minor version, with kubeadm, and not checked": {given: "v1.35.9", bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.3"), skip: "KubeadmVersionSkew",
			want: "v1.35.9", reason: v1alpha1.ReasonVersionSet},
		"no version at all": {given: "latest", bootstrap: other, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "latest", reason: v1alpha1.ReasonVersionSkew, problem: "is not a version such as"},

		"during an upgrade": {bootstrap: kubeadm, controlPlane: at("v1.37.0", "v1.36.3"),
			want: "v1.37.0", reason: v1alpha1.ReasonVersionOfControlPlane, changing: "from v1.36.3 to v1.37.0"},
		"during an upgrade, of which a part is done": {bootstrap: kubeadm, controlPlane: at("v1.37.0", "v1.37.0", "v1.36.3"),
			want: "v1.37.0", reason: v1alpha1.ReasonVersionOfControlPlane, changing: "from v1.36.3 to v1.37.0"},
		"an upgrade between two builds": {bootstrap: other, controlPlane: at("v1.36.3+k3s2", "v1.36.3+k3s1"),
			want: "v1.36.3+k3s2", reason: v1alpha1.ReasonVersionOfControlPlane, changing: "from v1.36.3+k3s1 to v1.36.3+k3s2"},
		"an upgrade to a tenth build": {bootstrap: other, controlPlane: at("v1.36.3+rke2r10", "v1.36.3+rke2r9"),
			want: "v1.36.3+rke2r10", reason: v1alpha1.ReasonVersionOfControlPlane, changing: "from v1.36.3+rke2r9 to v1.36.3+rke2r10"},
		"a control plane of a build": {bootstrap: other, controlPlane: at("v1.36.3+k3s2", "v1.36.3+k3s2"),
			want: "v1.36.3+k3s2", reason: v1alpha1.ReasonVersionOfControlPlane},
		"a control plane that runs no version": {bootstrap: other, controlPlane: at("v1.36.3", "unknown"),
			want: "v1.36.3", reason: v1alpha1.ReasonVersionOfControlPlane},
		"a control plane that should have no version": {bootstrap: other, controlPlane: at("latest", "v1.36.3"),
			want: "latest", reason: v1alpha1.ReasonVersionSkew, problem: "is not a version such as"},
		"before the control plane runs": {bootstrap: kubeadm, controlPlane: at("v1.37.0"),
			want: "v1.37.0", reason: v1alpha1.ReasonVersionOfControlPlane, changing: "does not report a version yet"},
		"before an upgrade of the topology": {bootstrap: kubeadm, controlPlane: withTopology(at("v1.36.3", "v1.36.3"), "v1.37.0"),
			want: "v1.36.3", reason: v1alpha1.ReasonVersionOfControlPlane, changing: "on the way to version v1.37.0"},
		"that of a MachineDeployment": {followed: "v1.36.2", bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.36.2", reason: v1alpha1.ReasonVersionOfMachineDeployment},
		"that of a MachineDeployment, and a control plane without a version": {followed: "v1.36.2", bootstrap: kubeadm, controlPlane: withTopology(at(""), "v1.36.3"),
			want: "v1.36.2", reason: v1alpha1.ReasonVersionOfMachineDeployment},
		"its own, and not that of a MachineDeployment": {given: "v1.36.3", followed: "v1.36.2", bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.36.3", reason: v1alpha1.ReasonVersionSet},
		"a MachineDeployment of an older minor version, with kubeadm": {followed: "v1.35.9", bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.3"),
			want: "v1.35.9", reason: v1alpha1.ReasonVersionSkew, problem: "change the version of MachineDeployment md-0"},
		"a MachineDeployment that its topology does not upgrade": {followed: "v1.36.2", unowned: true, bootstrap: other, controlPlane: withTopology(at("v1.36.3", "v1.36.3"), "v1.36.3"),
			want: "v1.36.2", reason: v1alpha1.ReasonVersionSkew, problem: "change the version of MachineDeployment md-0, or set spec.template.spec.version to v1.36.3"},
		"a MachineDeployment of a topology": {followed: "v1.36.3", bootstrap: kubeadm, controlPlane: withTopology(at("v1.36.3", "v1.36.3"), "v1.36.3"),
			want: "v1.36.3", reason: v1alpha1.ReasonVersionOfMachineDeployment},
		"a MachineDeployment before its topology upgrades the control plane": {followed: "v1.36.3", bootstrap: kubeadm, controlPlane: withTopology(at("v1.36.3", "v1.36.3"), "v1.37.0"),
			want: "v1.36.3", reason: v1alpha1.ReasonVersionOfMachineDeployment, changing: "on the way to version v1.37.0"},
		"a MachineDeployment while its topology upgrades the control plane": {followed: "v1.36.3", bootstrap: kubeadm, controlPlane: withTopology(at("v1.37.0", "v1.36.3"), "v1.37.0"),
			want: "v1.36.3", reason: v1alpha1.ReasonVersionOfMachineDeployment, changing: "from v1.36.3 to v1.37.0"},
		"a MachineDeployment after its topology has upgraded the control plane": {followed: "v1.36.3", bootstrap: kubeadm, controlPlane: withTopology(at("v1.37.0", "v1.37.0"), "v1.37.0"),
			want: "v1.36.3", reason: v1alpha1.ReasonVersionOfMachineDeployment, changing: "MachineDeployment md-0 is at v1.36.3 on the way to version v1.37.0"},
		"a version that is too new, during an upgrade": {given: "v1.38.0", bootstrap: other, controlPlane: at("v1.37.0", "v1.36.3"),
			want: "v1.38.0", reason: v1alpha1.ReasonVersionSkew, problem: "is newer than version v1.37.0", changing: "from v1.36.3 to v1.37.0"},
		"a control plane that runs a newer version": {bootstrap: kubeadm, controlPlane: at("v1.36.3", "v1.36.4"),
			want: "v1.36.3", reason: v1alpha1.ReasonVersionOfControlPlane},
	} {
		t.Run(name, func(t *testing.T) {
			template := templateWith(tc.given, tc.bootstrap)
			followed := Followed{}
			if tc.followed != "" {
				followed = Followed{MachineDeployment: "md-0", Version: tc.followed, OfTopology: !tc.unowned}
				template.Spec.Template.Spec.Version = cmp.Or(tc.given, tc.followed)
			}
			if tc.pools {
				template.Spec.ScalableResource.Kind = v1alpha1.ScalableResourceKindMachinePool
			}
			bootstrap := &unstructured.Unstructured{}
			bootstrap.SetAnnotations(map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: tc.skip})
			got := Of(template, bootstrap, tc.controlPlane, followed)
			if got.Name != tc.want || got.Reason != tc.reason {
				t.Errorf("got version %q for reason %s, want %q for %s", got.Name, got.Reason, tc.want, tc.reason)
			}
			if !strings.Contains(got.Problem, tc.problem) || (got.Problem != "") != (tc.problem != "") {
				t.Errorf("got problem %q, want %q", got.Problem, tc.problem)
			}
			if !strings.Contains(got.Changing, tc.changing) || (got.Changing != "") != (tc.changing != "") {
				t.Errorf("got change %q, want %q", got.Changing, tc.changing)
			}
			if got.Problem == "" && got.Message == "" {
				t.Error("there is neither a problem nor a message")
			}
			for text, want := range map[string]bool{
				"no Node is replaced until that is done: " + got.Changing: got.Changing != "",
				"the control plane reports no version to compare it with": tc.given != "" && tc.controlPlane.Version == "",
			} {
				if strings.Contains(got.Message, text) != want {
					t.Errorf("got %q, want that it contains %q: %t", got.Message, text, want)
				}
			}
		})
	}
}

// The annotation of the template reaches MachineSets and takes precedence over that of the bootstrap
// template.
func TestSkipped(t *testing.T) {
	bootstrap := &unstructured.Unstructured{}
	bootstrap.SetAnnotations(map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "All"})
	template := templateWith("", "RKE2ConfigTemplate")
	if got := Skipped(template, nil); got.Has(clusterv1.MachineSetPreflightCheckAll) {
		t.Errorf("without a bootstrap template: got %v", got)
	}
	if got := Skipped(template, bootstrap); !got.Has(clusterv1.MachineSetPreflightCheckAll) {
		t.Errorf("got %v, want that of the bootstrap template", got)
	}
	template.Spec.ScalableResource.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "ControlPlaneIsStable"}
	if got := Skipped(template, bootstrap); got.Has(clusterv1.MachineSetPreflightCheckAll) || !got.Has(clusterv1.MachineSetPreflightCheckControlPlaneIsStable) {
		t.Errorf("got %v, want that of the template", got)
	}
}

// A template needs a version for kubeadm if any Machines are generated from it. Existing MachineDeployments
// have their own bootstrap templates.
func TestKubeadmNeedsAVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplateSpec)
		needed bool
	}{
		"catalogs": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.CatalogRefs = []v1alpha1.CatalogReference{{Name: "a"}}
		}, true},
		"infrastructure": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Discovery = &v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{}}
		}, true},
		"MachineDeployments": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
		}, false},
		"nothing": {func(*v1alpha1.KarpenterMachineTemplateSpec) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			template := templateWith("", KubeadmTemplate.Kind)
			template.Spec.CatalogRefs = nil
			tc.change(&template.Spec)
			if got := Of(template, nil, ControlPlane{}, Followed{}); (got.Reason == v1alpha1.ReasonVersionMissing) != tc.needed {
				t.Errorf("got reason %s, want %s: %t", got.Reason, v1alpha1.ReasonVersionMissing, tc.needed)
			}
		})
	}
}

func TestControlPlaneOf(t *testing.T) {
	cluster := &clusterv1.Cluster{}
	for name, tc := range map[string]struct {
		fields  map[string]any
		version string
		running string
		fails   bool
	}{
		"no version": {fields: map[string]any{"spec": map[string]any{}}},
		"status.version": {fields: map[string]any{"spec": map[string]any{"version": "v1.36.3"}, "status": map[string]any{"version": "v1.36.2"}},
			version: "v1.36.3", running: "v1.36.2"},
		"status.versions comes first": {fields: map[string]any{"spec": map[string]any{"version": "v1.36.3"}, "status": map[string]any{
			"version": "v1.36.2", "versions": []any{map[string]any{"version": "v1.36.1"}, map[string]any{"version": "v1.36.3"}}}},
			version: "v1.36.3", running: "v1.36.1,v1.36.3"},
		"status.versions without a version": {fields: map[string]any{"spec": map[string]any{"version": "v1.36.3"}, "status": map[string]any{
			"version": "v1.36.2", "versions": []any{map[string]any{"replicas": int64(1)}}}},
			version: "v1.36.3", running: "v1.36.2"},
		"a version of another type": {fields: map[string]any{"spec": map[string]any{"version": int64(1)}}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := controlPlaneOf(cluster, &unstructured.Unstructured{Object: tc.fields})
			if (err != nil) != tc.fails || got.Version != tc.version || strings.Join(got.Running, ",") != tc.running {
				t.Errorf("got %+v and %v", got, err)
			}
		})
	}
}
