// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// Each offering of a sample is for one of its NodePools, and a pool for GPUs has no other
// offerings.
func TestNodePools(t *testing.T) {
	for _, folder := range []string{
		"", "aws", "azure", "gcp", "openstack", "vsphere", "metal3", "eks", "eks-al2", "rke2", "k3s", "talos", "cloud-init",
		"aws-machinepool", "azure-machinepool",
	} {
		t.Run(folder, func(t *testing.T) {
			s := &sample{objects: createAll(t, folder)}
			template := &v1alpha1.KarpenterMachineTemplate{}
			convert(t, s.ofKind(v1alpha1.Kind)[0].Object, template)
			s.template = template
			offered, problems := s.types(t)
			built, more := catalog.Build(template, offered)
			if problems = append(problems, more...); len(problems) > 0 {
				t.Errorf("not all offerings are valid: %v", problems)
			}
			pools := map[string]scheduling.Requirements{}
			for _, object := range s.ofKind("NodePool") {
				pool := &karpv1.NodePool{}
				convert(t, object.Object, pool)
				if ref := pool.Spec.Template.Spec.NodeClassRef; ref.Name != template.Name || ref.Kind != v1alpha1.Kind || ref.Group != v1alpha1.Group {
					t.Errorf("NodePool %s refers to %+v", pool.Name, ref)
				}
				if err := pool.RuntimeValidate(t.Context()); err != nil {
					t.Errorf("NodePool %s: %v", pool.Name, err)
				}
				pools[pool.Name] = scheduling.NewNodeSelectorRequirementsWithMinValues(pool.Spec.Template.Spec.Requirements...)
			}
			for _, instanceType := range built {
				for _, offering := range instanceType.Offerings {
					checkPool(t, pools, instanceType, offering)
				}
			}
		})
	}
}

// checkPool checks that an offering is for one pool, the correct one.
func checkPool(t *testing.T, pools map[string]scheduling.Requirements, instanceType *cloudprovider.InstanceType, offering *cloudprovider.Offering) {
	t.Helper()
	var takes []string
	for name, requirements := range pools {
		if requirements.IsCompatible(instanceType.Requirements, scheduling.AllowUndefinedWellKnownLabels) &&
			requirements.IsCompatible(offering.Requirements, scheduling.AllowUndefinedWellKnownLabels) {
			takes = append(takes, name)
		}
	}
	want := "general"
	if _, gpu := instanceType.Capacity[nvidiaGPU]; gpu && len(pools) > 1 {
		want = "gpu"
	}
	if len(takes) != 1 || takes[0] != want {
		t.Errorf("%s, %s/%s is for the pools %v, want %s", instanceType.Name, offering.Zone(), offering.CapacityType(), takes, want)
	}
}

// convert converts an object from the API server to its type.
func convert(t *testing.T, from map[string]any, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, to); err != nil {
		t.Fatal(err)
	}
}
