// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/counts"
)

const nvidiaGPU corev1.ResourceName = "nvidia.com/gpu"

// provider is the fields of a provider that a sample uses.
type provider struct {
	// machine is the path of the fields below in the spec of the infrastructure.
	machine []string
	// instanceType is the field of the infrastructure template with the type; empty if the provider
	// has none.
	instanceType string
	// spot is the field that requests spot, and its value; empty if the provider has none.
	spot      string
	spotValue any
	// arm64 and gpu are fields that only such machines have, or that differ from the base; empty if
	// they need none.
	arm64, gpu string
	// noARM64 is whether the provider has no such machines.
	noARM64 bool
	// arguments returns the kubelet's arguments in the spec of a bootstrap configuration, which must
	// have the taint; nil for kubeadm. Samples of other bootstrap kinds can have few instance types.
	arguments func(*testing.T, map[string]any) map[string]string
}

func TestProviders(t *testing.T) {
	for folder, want := range map[string]provider{
		"aws":       {instanceType: "instanceType", spot: "spotMarketOptions", spotValue: map[string]any{}},
		"azure":     {instanceType: "vmSize", spot: "spotVMOptions", spotValue: map[string]any{"evictionPolicy": "Delete"}, arm64: "image"},
		"gcp":       {instanceType: "instanceType", spot: "provisioningModel", spotValue: "Spot", arm64: "image", gpu: "onHostMaintenance"},
		"openstack": {instanceType: "flavor", noARM64: true},
		"vsphere":   {gpu: "pciDevices", noARM64: true},
		"eks":       {instanceType: "instanceType", spot: "spotMarketOptions", spotValue: map[string]any{}, gpu: "ami", arguments: nodeadmArguments},
		"eks-al2":   {instanceType: "instanceType", spot: "spotMarketOptions", spotValue: map[string]any{}, arguments: eksArguments},
		"talos":     {instanceType: "instanceType", spot: "spotMarketOptions", spotValue: map[string]any{}, arm64: "ami", arguments: talosArguments},
		"rke2":      {noARM64: true, arguments: rke2Arguments},
		"k3s":       {noARM64: true, arguments: k3sArguments},
		"aws-machinepool": {machine: []string{"awsLaunchTemplate"},
			instanceType: "instanceType", spot: "spotMarketOptions", spotValue: map[string]any{}},
		"azure-machinepool": {machine: []string{"template"},
			instanceType: "vmSize", spot: "spotVMOptions", spotValue: map[string]any{"evictionPolicy": "Delete"}, arm64: "image"},
	} {
		t.Run(folder, func(t *testing.T) {
			s := apply(t, folder)
			all, number := s.generate(t)
			for _, m := range all {
				t.Run(m.String(), func(t *testing.T) { checkMachine(t, s, want, m) })
			}
			if want.arguments == nil {
				checkBreadth(t, want, all)
			}
			if !t.Failed() {
				counts.Print(t, "sample "+folder+": "+describe(number))
			}
		})
	}
}

// checkMachine checks that the generated objects request the machine that is offered.
func checkMachine(t *testing.T, s *sample, want provider, m made) {
	t.Helper()
	if m.failureDomain != m.offering.FailureDomain {
		t.Errorf("the failure domain is %q", m.failureDomain)
	}
	got, base := nested(t, m.infrastructure, want.machine...), nested(t, specOf(t, s.bases.Infrastructure), want.machine...)
	if want.instanceType != "" {
		if diff := cmp.Diff(any(m.instanceType.Name), got[want.instanceType]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.instanceType, diff)
		}
	} else {
		checkSize(t, m)
	}
	if want.spot != "" {
		spot, has := got[want.spot]
		if isSpot := m.offering.CapacityType == karpv1.CapacityTypeSpot; has != isSpot || isSpot && !cmp.Equal(want.spotValue, spot) {
			t.Errorf("%s is %v (%t)", want.spot, spot, has)
		}
	}
	_, isGPU := m.instanceType.Capacity[nvidiaGPU]
	isARM64 := m.instanceType.Labels[corev1.LabelArchStable] == karpv1.ArchitectureArm64
	for field, is := range map[string]bool{want.gpu: isGPU, want.arm64: isARM64} {
		if field != "" && cmp.Equal(base[field], got[field]) == is {
			t.Errorf("%s is %v", field, got[field])
		}
	}
	if _, named := m.instanceType.Labels[v1alpha1.InstanceGPUNameLabel]; named != isGPU {
		t.Errorf("the label %s exists: %t", v1alpha1.InstanceGPUNameLabel, named)
	}
	arguments := kubeadmArguments
	if want.arguments != nil {
		arguments = want.arguments
	}
	checkKubelet(t, s, m, arguments(t, m.bootstrap))
}

// On bare metal, a selector finds hosts by their type and their zone.
func TestMetal3(t *testing.T) {
	s := apply(t, "metal3")
	all, number := s.generate(t)
	for _, m := range all {
		t.Run(m.String(), func(t *testing.T) {
			want := map[string]any{"matchLabels": map[string]any{
				"example.com/instance-type":                      m.instanceType.Name,
				"infrastructure.cluster.x-k8s.io/failure-domain": m.offering.Zone,
			}}
			if diff := cmp.Diff(want, nested(t, m.infrastructure, "hostSelector")); diff != "" {
				t.Errorf("hostSelector (-want +got):\n%s", diff)
			}
			if m.failureDomain != m.offering.Zone {
				t.Errorf("the failure domain is %q", m.failureDomain)
			}
			counted := fmt.Sprintf("[BareMetalHosts with labels example.com/instance-type=%s,infrastructure.cluster.x-k8s.io/failure-domain=%s]", m.instanceType.Name, m.offering.Zone)
			if got := fmt.Sprint(m.offering.Pools); got != counted {
				t.Errorf("%s are counted, want %s", got, counted)
			}
			_, isGPU := m.instanceType.Capacity[nvidiaGPU]
			base := nested(t, specOf(t, s.bases.Infrastructure), "image")
			if cmp.Equal(base, nested(t, m.infrastructure, "image")) == isGPU {
				t.Error("only machines with GPUs must have an image of their own")
			}
			checkKubelet(t, s, m, kubeadmArguments(t, m.bootstrap))
		})
	}
	if !t.Failed() {
		counts.Print(t, "sample metal3: "+describe(number))
	}
}

// checkSize checks that a virtual machine on vSphere has the size in the name of its type, and that
// the declared capacity matches: all CPUs, and at least all but 6 percent of the memory.
func checkSize(t *testing.T, m made) {
	t.Helper()
	var cpus, gib int64
	if _, err := fmt.Sscanf(m.instanceType.Name, "vsphere-vm.cpu-%d.mem-%dgb.os-ubuntu", &cpus, &gib); err != nil {
		t.Fatalf("%s is not as vSphere's cloud controller manager names instance types: %v", m.instanceType.Name, err)
	}
	want := map[string]any{"numCPUs": cpus, "memoryMiB": gib << 10}
	got := map[string]any{"numCPUs": m.infrastructure["numCPUs"], "memoryMiB": m.infrastructure["memoryMiB"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", m, diff)
	}
	cpu, memory := m.instanceType.Capacity.Cpu().Value(), m.instanceType.Capacity.Memory().Value()
	if cpu != cpus || memory > gib<<30 || memory < gib<<30*94/100 {
		t.Errorf("%s is declared to have %d CPUs and %d bytes", m, cpu, memory)
	}
}

// checkBreadth checks that a sample offers enough to be a useful example.
func checkBreadth(t *testing.T, want provider, all []made) {
	t.Helper()
	types, zones, capacityTypes, architectures := sets.New[string](), sets.New[string](), sets.New[string](), sets.New[string]()
	hasGPU := false
	for _, m := range all {
		types.Insert(m.instanceType.Name)
		zones.Insert(m.offering.Zone)
		capacityTypes.Insert(m.offering.CapacityType)
		architectures.Insert(m.instanceType.Labels[corev1.LabelArchStable])
		_, gpu := m.instanceType.Capacity[nvidiaGPU]
		hasGPU = hasGPU || gpu
	}
	if types.Len() < 6 || zones.Len() != 3 || !hasGPU {
		t.Errorf("%d instance types in %d zones, with a GPU: %t", types.Len(), zones.Len(), hasGPU)
	}
	if capacityTypes.Has(karpv1.CapacityTypeSpot) != (want.spot != "") {
		t.Errorf("capacity types %v", capacityTypes.UnsortedList())
	}
	if architectures.Has(karpv1.ArchitectureArm64) == want.noARM64 {
		t.Errorf("architectures %v", architectures.UnsortedList())
	}
}

// What a provider's CRD does not know is rejected: otherwise the tests above would pass with any
// patches.
func TestUnknownIsRejected(t *testing.T) {
	s := apply(t, "gcp")
	for name, change := range map[string]func(spec map[string]any){
		"a field":         func(spec map[string]any) { spec["spotMarketOptions"] = map[string]any{} },
		"a value":         func(spec map[string]any) { spec["provisioningModel"] = "spot" },
		"a type of value": func(spec map[string]any) { spec["instanceType"] = int64(2) },
	} {
		t.Run(name, func(t *testing.T) {
			object := s.bases.Infrastructure.DeepCopy()
			object.SetName("other")
			object.SetResourceVersion("")
			spec := object.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			change(spec)
			if err := apiServer.Create(t.Context(), object); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}
