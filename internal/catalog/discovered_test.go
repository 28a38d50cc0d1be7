// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// infrastructureTemplate has 2 CPUs and 8Gi of memory in its status.
func infrastructureTemplate(name string, annotations map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"capacity": map[string]any{"cpu": "2", "memory": "8Gi"},
		"nodeInfo": map[string]any{"architecture": "arm64"},
	}}}
	object.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	object.SetKind("AWSMachineTemplate")
	object.SetNamespace("fleet")
	object.SetName(name)
	object.SetAnnotations(annotations)
	return object
}

// machineDeployment returns a MachineDeployment that templates may use.
func machineDeployment(name string, annotations map[string]string) *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{}
	deployment.Namespace, deployment.Name = "fleet", name
	deployment.Annotations = lo.Assign(annotations, map[string]string{v1alpha1.AdoptableAnnotation: "true"})
	deployment.Spec.Replicas = new(int32(2))
	deployment.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "missing"}
	return deployment
}

func TestFromInfrastructure(t *testing.T) {
	ref := &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "large"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		change      func(*unstructured.Unstructured)
		want        Type
		wantError   string
	}{
		"its status": {want: Type{
			Name: "large", Capacity: corev1.ResourceList(list("cpu", "2", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "arm64"},
			Offerings: []Offering{{CapacityType: "on-demand", Price: 0.06 + 0.032, ListPrice: 0.06 + 0.032, InfrastructureRef: ref}},
		}},
		"annotations take precedence, each for its field": {
			annotations: map[string]string{
				memoryAnnotation: "16Gi", diskAnnotation: "100Gi", maxPodsAnnotation: "58", gpuCountAnnotation: "2", gpuTypeAnnotation: "amd.com/gpu",
				labelsAnnotation: "disk=ssd,node.kubernetes.io/instance-type=other,karpenter.sh/nodepool=x,karpenter.cluster.x-k8s.io/instance-family=m7",
				v1alpha1.DiscoveredInstanceTypeAnnotation: "m7.xl", v1alpha1.DiscoveredZonesAnnotation: "b, a,b", v1alpha1.DiscoveredCapacityTypeAnnotation: "spot",
				v1alpha1.DiscoveredPriceAnnotation: "1.5", v1alpha1.DiscoveredMaxMachinesAnnotation: "7",
			},
			want: Type{
				Name: "m7.xl", Capacity: corev1.ResourceList(list("cpu", "2", "memory", "16Gi", "ephemeral-storage", "100Gi", "pods", "58", "amd.com/gpu", "2")),
				Labels: map[string]string{"kubernetes.io/arch": "arm64", "disk": "ssd", "karpenter.cluster.x-k8s.io/instance-family": "m7"},
				Offerings: []Offering{
					{Zone: "a", CapacityType: "spot", Price: 1.5, ListPrice: 1.5, MaxMachines: new(int32(7)), Limiter: &Limiter{APIGroup: ref.APIGroup, Kind: ref.Kind}, InfrastructureRef: ref},
					{Zone: "b", CapacityType: "spot", Price: 1.5, ListPrice: 1.5, MaxMachines: new(int32(7)), Limiter: &Limiter{APIGroup: ref.APIGroup, Kind: ref.Kind}, InfrastructureRef: ref},
				},
			},
		},
		"names and zones of the labels annotation": {
			annotations: map[string]string{labelsAnnotation: "node.kubernetes.io/instance-type=m5,topology.kubernetes.io/zone=z,kubernetes.io/arch=amd64"},
			want: Type{
				Name: "m5", Capacity: corev1.ResourceList(list("cpu", "2", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "amd64"},
				Offerings: []Offering{{Zone: "z", CapacityType: "on-demand", Price: 0.06 + 0.032, ListPrice: 0.06 + 0.032, InfrastructureRef: ref}},
			},
		},
		"no GPU though the status has one": {
			annotations: map[string]string{gpuCountAnnotation: "0"},
			change: func(o *unstructured.Unstructured) {
				o.Object["status"] = map[string]any{"capacity": map[string]any{"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "1"}}
			},
			want: Type{Name: "large", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "1Gi")), Labels: map[string]string{}, Offerings: []Offering{{CapacityType: "on-demand", Price: 0.124, ListPrice: 0.124, InfrastructureRef: ref}}},
		},
		"no disk though the status has one": {
			annotations: map[string]string{diskAnnotation: "0"},
			change: func(o *unstructured.Unstructured) {
				o.Object["status"] = map[string]any{"capacity": map[string]any{"cpu": "4", "memory": "1Gi", "ephemeral-storage": "10Gi"}}
			},
			want: Type{Name: "large", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "1Gi")), Labels: map[string]string{}, Offerings: []Offering{{CapacityType: "on-demand", Price: 0.124, ListPrice: 0.124, InfrastructureRef: ref}}},
		},
		"its operating system, but nothing that no Node reports": {
			change: func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedStringMap(o.Object, map[string]string{"operatingSystem": "windows", "architecture": "x86 or arm"}, "status", "nodeInfo")
			},
			want: Type{
				Name: "large", Capacity: corev1.ResourceList(list("cpu", "2", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/os": "windows"},
				Offerings: []Offering{{CapacityType: "on-demand", Price: 0.06 + 0.032, ListPrice: 0.06 + 0.032, InfrastructureRef: ref}},
			},
		},
		"no capacity": {
			change:    func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "status") },
			wantError: "expected cpu in the status.capacity of the infrastructure template or the annotation capacity.cluster-autoscaler.kubernetes.io/cpu, found neither",
		},
		"an invalid status": {
			change:    func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"capacity": "much"} },
			wantError: "status.capacity: expected a map",
		},
		"an invalid quantity": {
			change: func(o *unstructured.Unstructured) {
				o.Object["status"] = map[string]any{"capacity": map[string]any{"cpu": "much"}}
			},
			wantError: `status.capacity.cpu: expected a quantity of at least 0, such as 4 or 16Gi, found "much"`,
		},
		"numbers in the status": {
			change: func(o *unstructured.Unstructured) {
				o.Object["status"] = map[string]any{"capacity": map[string]any{"cpu": int64(4), "memory": "1Gi"}}
			},
			want: Type{Name: "large", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "1Gi")), Labels: map[string]string{}, Offerings: []Offering{{CapacityType: "on-demand", Price: 0.124, ListPrice: 0.124, InfrastructureRef: ref}}},
		},
		"a bad CPU":      {annotations: map[string]string{cpuAnnotation: "-1"}, wantError: `annotation capacity.cluster-autoscaler.kubernetes.io/cpu: expected a quantity of at least 0, such as 4 or 16Gi, found "-1"`},
		"an endless CPU": {annotations: map[string]string{cpuAnnotation: "1e2147483647"}, wantError: `annotation capacity.cluster-autoscaler.kubernetes.io/cpu: expected a quantity of at least 0, such as 4 or 16Gi, found "1e2147483647"`},
		"an endless memory": {
			change: func(o *unstructured.Unstructured) {
				o.Object["status"] = map[string]any{"capacity": map[string]any{"cpu": "2", "memory": "1e-2147483648"}}
			},
			wantError: `status.capacity.memory: expected a quantity of at least 0, such as 4 or 16Gi, found "1e-2147483648"`,
		},
		"a bad GPU count":     {annotations: map[string]string{gpuCountAnnotation: "1.5"}, wantError: "gpu-count: expected a whole number"},
		"a bad GPU type":      {annotations: map[string]string{gpuCountAnnotation: "1", gpuTypeAnnotation: "a b"}, wantError: `gpu-type: expected the name of a resource, such as nvidia.com/gpu, found "a b"`},
		"bad labels":          {annotations: map[string]string{labelsAnnotation: "a=b=c"}, wantError: `annotation capacity.cluster-autoscaler.kubernetes.io/labels: expected labels in the form key=value,key=value, found "a=b=c"`},
		"a bad label value":   {annotations: map[string]string{labelsAnnotation: "a=b c"}, wantError: `labels: expected labels in the form key=value,key=value, found "a=b c"`},
		"a bad label key":     {annotations: map[string]string{labelsAnnotation: "a b=c"}, wantError: `labels: expected labels in the form key=value,key=value, found "a b=c"`},
		"a bad zone":          {annotations: map[string]string{v1alpha1.DiscoveredZonesAnnotation: "a b"}, wantError: `/zones: expected names of zones separated by commas, such as us-east-1a,us-east-1b, found "a b"`},
		"a bad capacity type": {annotations: map[string]string{v1alpha1.DiscoveredCapacityTypeAnnotation: "reserved"}, wantError: `capacity-type: expected on-demand or spot, found "reserved"`},
		"a bad price":         {annotations: map[string]string{v1alpha1.DiscoveredPriceAnnotation: "cheap"}, wantError: `price: expected a decimal number of at least 0, such as 0.096, found "cheap"`},
		"a bad limit":         {annotations: map[string]string{v1alpha1.DiscoveredMaxMachinesAnnotation: "-1"}, wantError: `max-machines: expected a whole number of at least 0, found "-1"`},
		"a bad name":          {annotations: map[string]string{v1alpha1.DiscoveredInstanceTypeAnnotation: "a/b"}, wantError: `must be a label value, found "a/b"`},
	} {
		t.Run(name, func(t *testing.T) {
			object := infrastructureTemplate("large", tc.annotations)
			if tc.change != nil {
				tc.change(object)
			}
			got, err := fromInfrastructure(object, estimated)
			check(t, got, err, tc.want, tc.wantError)
		})
	}
}

func TestFromMachineDeployment(t *testing.T) {
	capacity := map[string]string{cpuAnnotation: "4"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		change      func(*clusterv1.MachineDeployment)
		want        Type
		wantError   string
	}{
		"annotations over the status of its infrastructure template": {
			annotations: capacity,
			want: Type{Name: "md", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "arm64"},
				Offerings: []Offering{{CapacityType: "on-demand", Price: 0.12 + 0.032, ListPrice: 0.12 + 0.032, MachineDeployment: "md"}}},
		},
		"only labels that reach the Node": {
			annotations: capacity,
			change: func(md *clusterv1.MachineDeployment) {
				md.Labels = map[string]string{"team": "a", "node-role.kubernetes.io/worker": ""}
				md.Spec.Template.Labels = map[string]string{"team": "a", "node.kubernetes.io/instance-type": "m5", "node-role.kubernetes.io/gpu": "", "disk.node.cluster.x-k8s.io/kind": "ssd"}
			},
			want: Type{Name: "m5", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "8Gi")),
				Labels:    map[string]string{"kubernetes.io/arch": "arm64", "node-role.kubernetes.io/gpu": "", "disk.node.cluster.x-k8s.io/kind": "ssd"},
				Offerings: []Offering{{CapacityType: "on-demand", Price: 0.12 + 0.032, ListPrice: 0.12 + 0.032, MachineDeployment: "md"}}},
		},
		"a failure domain and a limit": {
			annotations: map[string]string{cpuAnnotation: "4", clusterv1.AutoscalerMaxSizeAnnotation: "5"},
			change:      func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.FailureDomain = "a" },
			want: Type{Name: "md", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "arm64"},
				Offerings: []Offering{{Zone: "a", CapacityType: "on-demand", Price: 0.12 + 0.032, ListPrice: 0.12 + 0.032, MaxMachines: new(int32(3)), MachineDeployment: "md"}}},
		},
		"a limit below what it has": {
			annotations: map[string]string{cpuAnnotation: "4", clusterv1.AutoscalerMaxSizeAnnotation: "1"},
			want: Type{Name: "md", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "arm64"},
				Offerings: []Offering{{CapacityType: "on-demand", Price: 0.12 + 0.032, ListPrice: 0.12 + 0.032, MaxMachines: new(int32(0)), MachineDeployment: "md"}}},
		},
		"adopted, with unmanaged replicas": {
			annotations: map[string]string{cpuAnnotation: "4", clusterv1.AutoscalerMaxSizeAnnotation: "5", v1alpha1.AdoptedAnnotation: "2026-01-01T00:00:00Z", v1alpha1.UnmanagedReplicasAnnotation: "1"},
			change: func(md *clusterv1.MachineDeployment) {
				md.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
			},
			want: Type{Name: "md", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "arm64"},
				Offerings: []Offering{{CapacityType: "on-demand", Price: 0.12 + 0.032, ListPrice: 0.12 + 0.032, MaxMachines: new(int32(4)), MachineDeployment: "md"}}},
		},
		"no longer adopted, with unmanaged replicas": {
			annotations: map[string]string{cpuAnnotation: "4", clusterv1.AutoscalerMaxSizeAnnotation: "5", v1alpha1.UnmanagedReplicasAnnotation: "1"},
			want: Type{Name: "md", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "arm64"},
				Offerings: []Offering{{CapacityType: "on-demand", Price: 0.12 + 0.032, ListPrice: 0.12 + 0.032, MaxMachines: new(int32(3)), MachineDeployment: "md"}}},
		},
		"paused": {
			annotations: map[string]string{cpuAnnotation: "4", clusterv1.PausedAnnotation: ""},
			want: Type{Name: "md", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "arm64"},
				Offerings: []Offering{{CapacityType: "on-demand", Price: 0.12 + 0.032, ListPrice: 0.12 + 0.032, MachineDeployment: "md", Paused: true}}},
		},
		"adopted by another template": {
			annotations: capacity,
			change:      func(md *clusterv1.MachineDeployment) { md.Labels = map[string]string{v1alpha1.TemplateLabel: "other"} },
			wantError:   "it is adopted by KarpenterMachineTemplate other",
		},
		"scaled by the other provider": {
			annotations: capacity,
			change:      func(md *clusterv1.MachineDeployment) { md.Labels = map[string]string{v1alpha1.OtherMemberLabel: ""} },
			wantError:   "karpenter-provider-cluster-api scales it: remove the label node.cluster.x-k8s.io/karpenter-member",
		},
		"a bad limit": {annotations: map[string]string{cpuAnnotation: "4", clusterv1.AutoscalerMaxSizeAnnotation: "many"}, wantError: "cluster-api-autoscaler-node-group-max-size: expected a whole number"},
		"a bad number of unmanaged replicas": {
			annotations: map[string]string{cpuAnnotation: "4", v1alpha1.AdoptedAnnotation: "", v1alpha1.UnmanagedReplicasAnnotation: "x"},
			wantError:   "unmanaged-replicas: expected a whole number",
		},
		"a failure domain with another name than the zone": {
			annotations: capacity,
			change:      func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.FailureDomain = "1" },
			want: Type{Name: "md", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "arm64"},
				Offerings: []Offering{{Zone: "eastus-1", CapacityType: "on-demand", Price: 0.12 + 0.032, ListPrice: 0.12 + 0.032, MachineDeployment: "md"}}},
		},
		"a zone among its labels": {
			annotations: map[string]string{cpuAnnotation: "4", labelsAnnotation: "topology.kubernetes.io/zone=z"},
			change:      func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.FailureDomain = "2" },
			want: Type{Name: "md", Capacity: corev1.ResourceList(list("cpu", "4", "memory", "8Gi")), Labels: map[string]string{"kubernetes.io/arch": "arm64"},
				Offerings: []Offering{{Zone: "z", CapacityType: "on-demand", Price: 0.12 + 0.032, ListPrice: 0.12 + 0.032, MachineDeployment: "md"}}},
		},
		"a failure domain of several zones": {
			annotations: capacity,
			change:      func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.FailureDomain = "2" },
			wantError:   "spec.template.spec.failureDomain 2 is that of the zones east, east-2, north, south in spec.failureDomains: set the label topology.kubernetes.io/zone in the annotation capacity.cluster-autoscaler.kubernetes.io/labels",
		},
		"a failure domain that is no label value": {
			annotations: capacity,
			change:      func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.FailureDomain = "rack 1" },
			wantError:   `spec.template.spec.failureDomain: expected a label value, because Nodes have it as a label, found "rack 1"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := machineDeployment("md", tc.annotations)
			if tc.change != nil {
				tc.change(deployment)
			}
			general := template()
			general.Spec.FailureDomains = []v1alpha1.ZoneFailureDomain{{Zone: "eastus-1", FailureDomain: "1"}, {Zone: "east", FailureDomain: "2"}, {Zone: "south", FailureDomain: "2"}, {Zone: "north", FailureDomain: "2"}, {Zone: "east-2", FailureDomain: "2"}}
			got, err := fromMachineDeployment(deployment, infrastructureTemplate("large", nil), general, estimated)
			check(t, got, err, tc.want, tc.wantError)
		})
	}
	if _, err := fromMachineDeployment(machineDeployment("md", capacity), nil, template(), estimated); err == nil || !strings.HasSuffix(err.Error(), "or the annotation capacity.cluster-autoscaler.kubernetes.io/memory, found neither") {
		t.Errorf("got %v without memory anywhere", err)
	}
}

func check(t *testing.T, got Type, err error, want Type, wantError string) {
	t.Helper()
	if wantError != "" {
		if err == nil || !strings.Contains(err.Error(), wantError) {
			t.Fatalf("got error %v, want %q", err, wantError)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
