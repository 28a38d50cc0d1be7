// SPDX-License-Identifier: Apache-2.0

package version

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// maxSkew is by how many minor versions a kubelet can be older than the API server
// (https://kubernetes.io/releases/version-skew-policy).
const maxSkew = 3

// KubeadmTemplate is the kind of the bootstrap templates whose provider needs a version. Package generate
// changes them so that Nodes join as Karpenter requires it.
var KubeadmTemplate = schema.GroupKind{Group: reference.BootstrapGroup, Kind: "KubeadmConfigTemplate"}

// Version is the Kubernetes version of a template's new Machines.
type Version struct {
	// Name is the version, such as v1.36.3; empty if the template sets none and the control plane
	// reports none.
	Name string
	// Problem is why nothing can be launched with this version, and what to do; empty if all is
	// well.
	Problem string
	// Reason is that of condition VersionReady.
	Reason string
	// Message describes which version is used and why, if there is no Problem.
	Message string
	// Changing is what still happens to the version of the control plane, or to that of the
	// MachineDeployment that the template follows; empty if it is done. Until then Cluster API
	// creates no Machines, and no Node is replaced.
	Changing string
}

// Of returns the version of a template's new Machines, and whether Cluster API would create them.
// The bootstrap template can be nil. It can have Cluster API's annotation that skips checks.
func Of(template *v1alpha1.KarpenterMachineTemplate, bootstrap *unstructured.Unstructured, controlPlane ControlPlane, followed Followed) Version {
	v := chosen(template, controlPlane, followed)
	if v.Changing = Changing(template, controlPlane, followed); v.Changing != "" {
		v.Message += "; no Node is replaced until that is done: " + v.Changing
		if inTopology(template, controlPlane, followed) {
			return v // the topology gives the MachineDeployment the version that fits, and NodeClaims wait until then
		}
	}
	if v.Problem == "" && controlPlane.Version != "" {
		if problem := skew(template, v.Name, controlPlane, followed, Skipped(template, bootstrap)); problem != "" {
			v.Reason, v.Problem = v1alpha1.ReasonVersionSkew, problem
		}
	}
	return v
}

// chosen returns the version of a template's new Machines, whatever Cluster API allows.
func chosen(template *v1alpha1.KarpenterMachineTemplate, controlPlane ControlPlane, followed Followed) Version {
	given, v := template.Spec.Template.Spec.Version, Version{}
	switch {
	case followed.gives(template):
		v.Name, v.Reason, v.Message = given, v1alpha1.ReasonVersionOfMachineDeployment, fmt.Sprintf("Machines get version %s, which is that of MachineDeployment %s in spec.template.from", given, followed.MachineDeployment)
	case given != "" && controlPlane.Version == "":
		v.Name, v.Reason, v.Message = given, v1alpha1.ReasonVersionSet, fmt.Sprintf("Machines get version %s, which spec.template.spec.version sets; the control plane reports no version to compare it with", given)
	case given != "":
		v.Name, v.Reason, v.Message = given, v1alpha1.ReasonVersionSet, fmt.Sprintf("Machines get version %s, which spec.template.spec.version sets", given)
	case controlPlane.Version == "" && usesKubeadm(template):
		v.Reason, v.Problem = v1alpha1.ReasonVersionMissing, "spec.template.spec.version is not set and the control plane reports no version, but KubeadmConfigTemplates need one to generate bootstrap data: set the Kubernetes version of the Machines, such as v1.36.3"
	case controlPlane.Version == "":
		v.Reason, v.Message = v1alpha1.ReasonVersionUnknown, "Machines get no version: spec.template.spec.version is not set, and the control plane reports none"
	default:
		v.Name = canonical(controlPlane.Version)
		v.Reason, v.Message = v1alpha1.ReasonVersionOfControlPlane, fmt.Sprintf("Machines get version %s, which is that of %s", v.Name, controlPlane.Name)
	}
	return v
}

// Changing returns what still happens to the version of the control plane, or to that of the
// MachineDeployment that a template follows; empty if it is done.
func Changing(template *v1alpha1.KarpenterMachineTemplate, controlPlane ControlPlane, followed Followed) string {
	if changing := controlPlane.Changing(); changing != "" {
		return changing
	}
	if given := template.Spec.Template.Spec.Version; inTopology(template, controlPlane, followed) && given != controlPlane.Version {
		return fmt.Sprintf("MachineDeployment %s is at %s on the way to version %s of the Cluster's topology", followed.MachineDeployment, given, controlPlane.Topology)
	}
	return ""
}

// inTopology reports whether the version of a template's Machines is that of a MachineDeployment which
// the topology of the Cluster upgrades.
func inTopology(template *v1alpha1.KarpenterMachineTemplate, controlPlane ControlPlane, followed Followed) bool {
	return followed.gives(template) && followed.OfTopology && controlPlane.Topology != "" && controlPlane.Version != ""
}

// canonical returns a version in the form that the webhook of MachineDeployments requires. Control
// planes of some providers have versions such as 1.36.
func canonical(version string) string {
	parsed, err := semver.ParseTolerant(version)
	if err != nil {
		return version
	}
	return "v" + parsed.String()
}

// Skipped returns the preflight checks that Cluster API does not make for Machines of a template. The
// annotation of a MachineSet, which comes from the template, takes precedence over that of the
// bootstrap template.
func Skipped(template *v1alpha1.KarpenterMachineTemplate, bootstrap *unstructured.Unstructured) sets.Set[clusterv1.MachineSetPreflightCheck] {
	value := template.Spec.ScalableResource.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation]
	if value == "" && bootstrap != nil {
		value = bootstrap.GetAnnotations()[clusterv1.MachineSetSkipPreflightChecksAnnotation]
	}
	return sets.New(lo.Map(strings.Split(value, ","), func(check string, _ int) clusterv1.MachineSetPreflightCheck {
		return clusterv1.MachineSetPreflightCheck(strings.TrimSpace(check))
	})...)
}

// skew returns why Cluster API would create no Machines of a version; empty if it would.
func skew(template *v1alpha1.KarpenterMachineTemplate, name string, controlPlane ControlPlane, followed Followed, skipped sets.Set[clusterv1.MachineSetPreflightCheck]) string {
	checks := func(check clusterv1.MachineSetPreflightCheck) bool {
		return !skipped.HasAny(check, clusterv1.MachineSetPreflightCheckAll)
	}
	wanted, err := semver.ParseTolerant(name)
	if err != nil {
		return fmt.Sprintf("the version of the Machines is %s, which is not a version such as v1.36.3: %s", name, err)
	}
	has, err := semver.ParseTolerant(controlPlane.Version)
	if err != nil {
		return fmt.Sprintf("%s has version %s, which is not a version such as v1.36.3: %s", controlPlane.Name, controlPlane.Version, err)
	}
	problem := requirement(template, name, wanted, has, controlPlane, checks)
	if problem == "" && checks(clusterv1.MachineSetPreflightCheckKubernetesVersionSkew) {
		problem = policy(name, wanted, has, controlPlane)
	}
	if problem == "" {
		return ""
	}
	if followed.gives(template) {
		return fmt.Sprintf("%s: change the version of MachineDeployment %s, or set spec.template.spec.version to %s", problem, followed.MachineDeployment, controlPlane.Version)
	}
	return fmt.Sprintf("%s: remove spec.template.spec.version, so that Machines get the version of the control plane, or set it to %s", problem, controlPlane.Version)
}

// requirement returns why a topology or kubeadm does not allow a version; empty if they do. MachineSets make these checks
// before they create Machines.
func requirement(template *v1alpha1.KarpenterMachineTemplate, name string, wanted, has semver.Version, controlPlane ControlPlane, checks func(clusterv1.MachineSetPreflightCheck) bool) string {
	switch {
	case !scalable.KindOf(template.Spec.ScalableResource).HasMachineSets():
		return ""
	case controlPlane.Topology != "" && name != controlPlane.Version && checks(clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew):
		return fmt.Sprintf("version %s of the Machines is not version %s of %s, which Cluster API requires in a Cluster with a topology", name, controlPlane.Version, controlPlane.Name)
	case usesKubeadm(template) && wanted.Minor != has.Minor && checks(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew):
		return fmt.Sprintf("version %s of the Machines and version %s of %s differ in their minor version, with which kubeadm cannot join", name, controlPlane.Version, controlPlane.Name)
	}
	return ""
}

// policy returns why the version skew policy of Kubernetes does not allow a version; empty if it does.
func policy(name string, wanted, has semver.Version, controlPlane ControlPlane) string {
	switch {
	case wanted.Major > has.Major || wanted.Major == has.Major && wanted.Minor > has.Minor:
		return fmt.Sprintf("version %s of the Machines is newer than version %s of %s, which a kubelet must not be", name, controlPlane.Version, controlPlane.Name)
	case wanted.Major < has.Major || wanted.Minor+maxSkew < has.Minor:
		return fmt.Sprintf("version %s of the Machines is more than %d minor versions older than version %s of %s", name, maxSkew, controlPlane.Version, controlPlane.Name)
	}
	return ""
}

// usesKubeadm reports whether the Machines that are generated from a template need a version to
// generate bootstrap data, because that is how the kubeadm bootstrap provider works.
func usesKubeadm(template *v1alpha1.KarpenterMachineTemplate) bool {
	ref := template.Spec.Template.Spec.Bootstrap.ConfigRef
	discovery := template.Spec.Discovery
	generates := len(template.Spec.CatalogRefs) > 0 || discovery != nil && discovery.InfrastructureTemplates != nil
	return generates && ref.GroupKind() == KubeadmTemplate
}
