// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// short returns labels without their domain, for tables.
func short(labels map[string]string) map[string]string {
	return lo.MapKeys(labels, func(_, key string) string { return key[len(v1alpha1.Group+"/instance-"):] })
}

func TestAWSName(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"m5.large":           {"family": "m5", "size": "large", "category": "m", "generation": "5"},
		"c7gn.metal-24xl":    {"family": "c7gn", "size": "metal-24xl", "category": "c", "generation": "7"},
		"m7i-flex.large":     {"family": "m7i-flex", "size": "large", "category": "m", "generation": "7"},
		"u-6tb1.112xlarge":   {"family": "u-6tb1", "size": "112xlarge", "category": "u", "generation": "1"},
		"u7i-12tb.224xlarge": {"family": "u7i-12tb", "size": "224xlarge", "category": "u", "generation": "7"},
		"inf2.xlarge":        {"family": "inf2", "size": "xlarge", "category": "inf", "generation": "2"},
	} {
		m := newMachine("x", name)
		if err := awsName(&m); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, short(m.labels)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAzureName(t *testing.T) {
	for name, tc := range map[string]struct {
		gpus     int64
		want     map[string]string
		resource corev1.ResourceName
	}{
		"Standard_D4s_v5":            {0, map[string]string{"family": "Dsv5", "size": "4", "category": "D", "generation": "5", "cpu-manufacturer": "intel"}, ""},
		"Standard_A2":                {0, map[string]string{"family": "A", "size": "2", "category": "A", "generation": "1", "cpu-manufacturer": "intel"}, ""},
		"Standard_B2ats_v2":          {0, map[string]string{"family": "Batsv2", "size": "2", "category": "B", "generation": "2", "cpu-manufacturer": "amd"}, ""},
		"Standard_E4-2ads_v5":        {0, map[string]string{"family": "Eadsv5", "size": "4-2", "category": "E", "generation": "5", "cpu-manufacturer": "amd"}, ""},
		"Standard_HB120rs_v3":        {0, map[string]string{"family": "HBrsv3", "size": "120", "category": "H", "generation": "3", "cpu-manufacturer": "amd"}, ""},
		"Standard_NC4as_T4_v3":       {1, map[string]string{"family": "NCasT4v3", "size": "4", "category": "N", "generation": "3", "cpu-manufacturer": "amd", "gpu-name": "t4"}, nvidiaGPU},
		"Standard_NC6s_v3":           {1, map[string]string{"family": "NCsv3", "size": "6", "category": "N", "generation": "3", "cpu-manufacturer": "intel", "gpu-name": "v100"}, nvidiaGPU},
		"Standard_ND96isr_MI300X_v5": {8, map[string]string{"family": "NDisrMI300Xv5", "size": "96", "category": "N", "generation": "5", "cpu-manufacturer": "intel", "gpu-name": "mi300x"}, amdGPU},
		"Standard_HX176rs":           {0, map[string]string{"family": "HXrs", "size": "176", "category": "H", "generation": "1", "cpu-manufacturer": "amd"}, ""},
		"Standard_NG32ads_V620_v1":   {1, map[string]string{"family": "NGadsV620v1", "size": "32", "category": "N", "generation": "1", "cpu-manufacturer": "amd", "gpu-name": "v620"}, amdGPU},
		"Standard_NV4as_v4":          {0, map[string]string{"family": "NVasv4", "size": "4", "category": "N", "generation": "4", "cpu-manufacturer": "amd"}, ""},
		"another":                    {0, map[string]string{}, ""},
	} {
		m := newMachine("x", name)
		m.architecture = "amd64"
		azureName(&m, tc.gpus)
		if diff := cmp.Diff(tc.want, short(m.labels)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if tc.resource != "" && !m.has(tc.resource, tc.gpus) {
			t.Errorf("%s has %v", name, m.capacity)
		}
	}
}

// has reports whether the machine has a number of a resource.
func (m *machine) has(name corev1.ResourceName, count int64) bool {
	q, has := m.capacity[name]
	return has && q.Cmp(*resource.NewQuantity(count, resource.DecimalSI)) == 0
}

func TestGCPMachine(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"n2d-standard-4": {"family": "n2d", "size": "standard-4", "category": "n", "generation": "2", "cpu-manufacturer": "amd"},
		"e2-micro":       {"family": "e2", "size": "micro", "category": "e", "generation": "2"},
		"m3-ultramem-32": {"family": "m3", "size": "ultramem-32", "category": "m", "generation": "3", "cpu-manufacturer": "intel"},
		"custom":         {},
	} {
		m, err := (&gcpType{Name: name}).machine()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, short(m.labels)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFlavorGPUs(t *testing.T) {
	for alias, tc := range map[string]struct {
		resource corev1.ResourceName
		count    int64
		model    string
	}{
		"nvidia-t4:2":              {nvidiaGPU, 2, "t4"},
		"a100-80gb:1":              {nvidiaGPU, 1, "a100-80gb"},
		"gpu:1":                    {nvidiaGPU, 1, "gpu"},
		"amd_mi210:4":              {amdGPU, 4, "mi210"},
		"mi210:4":                  {amdGPU, 4, "mi210"},
		"connectx6:2, nvidia-l4:1": {nvidiaGPU, 1, "l4"},
		"nvidia-l4:1,connectx6:2":  {nvidiaGPU, 1, "l4"},
		"nvidia-l4:1,nvidia-t4:2":  {nvidiaGPU, 3, "t4"},
		"connectx6:2":              {"", 0, ""},
		"nvidia-l4:0":              {"", 0, ""},
	} {
		m := newMachine("x", "x")
		if err := (&flavor{}).gpus(&m, map[string]string{"pci_passthrough:alias": alias}); err != nil {
			t.Fatal(err)
		}
		if tc.count > 0 && !m.has(tc.resource, tc.count) || len(m.capacity) != min(1, int(tc.count)) || m.labels[v1alpha1.InstanceGPUNameLabel] != tc.model {
			t.Errorf("%s: %v %v", alias, m.capacity, m.labels)
		}
	}
}
