// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// what is a machine in the units of Kubernetes.
type what struct {
	CPU      string
	Memory   int64 // MiB
	Arch     string
	Capacity map[string]string
	Storage  string // GiB
	Zones    string
}

func whatOf(m *machine) what {
	w := what{CPU: m.cpu.String(), Memory: m.memory / mebibyte, Arch: m.architecture, Storage: m.labels[v1alpha1.InstanceLocalStorageLabel]}
	for name, quantity := range m.capacity {
		if w.Capacity == nil {
			w.Capacity = map[string]string{}
		}
		w.Capacity[string(name)] = quantity.String()
	}
	var zones []string
	for _, o := range m.offers {
		zones = append(zones, o.zone)
	}
	w.Zones = strings.Join(zones, ",")
	return w
}

// Google Cloud has memory in MiB, and local SSDs of 375 GiB each.
func TestUnitsOfGCP(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		want  what
	}{
		"n2-standard-4":      {`{"guestCpus":4,"memoryMb":16384,"architecture":"X86_64"}`, what{CPU: "4", Memory: 16384, Arch: "amd64"}},
		"e2-micro":           {`{"guestCpus":2,"memoryMb":1024}`, what{CPU: "2", Memory: 1024, Arch: "amd64"}},
		"t2a-standard-1":     {`{"guestCpus":1,"memoryMb":4096,"architecture":"ARM64"}`, what{CPU: "1", Memory: 4096, Arch: "arm64"}},
		"c3-standard-8-lssd": {`{"guestCpus":8,"memoryMb":32768,"bundledLocalSsds":{"partitionCount":2}}`, what{CPU: "8", Memory: 32768, Arch: "amd64", Storage: "750"}},
		"a2-highgpu-2g":      {`{"guestCpus":24,"memoryMb":174080,"accelerators":[{"guestAcceleratorType":"nvidia-tesla-a100","guestAcceleratorCount":2}]}`, what{CPU: "24", Memory: 174080, Arch: "amd64", Capacity: map[string]string{"nvidia.com/gpu": "2"}}},
		"ct5lp-hightpu-4t":   {`{"guestCpus":112,"memoryMb":196608,"accelerators":[{"guestAcceleratorType":"ct5lp","guestAcceleratorCount":4}]}`, what{CPU: "112", Memory: 196608, Arch: "amd64", Capacity: map[string]string{"google.com/tpu": "4"}}},
	} {
		t.Run(name, func(t *testing.T) {
			given := gcpType{Name: name}
			if err := json.Unmarshal([]byte(tc.given), &given); err != nil {
				t.Fatal(err)
			}
			m, err := given.machine()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, whatOf(m)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A zone of Google Cloud has the price of the zone, or else that of the region.
func TestPricesOfGCPZones(t *testing.T) {
	in := &gcpInput{inventory: &inventory{}, prices: map[[3]string]decimal.Decimal{
		{"n2", onDemand, ""}: decimal.RequireFromString("0.2"), {"n2", onDemand, "b"}: decimal.RequireFromString("0.3"), {"n2", spot, "b"}: decimal.RequireFromString("0.1"),
	}}
	m := newMachine("x", "n2")
	for _, zone := range []string{"a", "b"} {
		in.addOffers(&m, zone, &Options{})
	}
	var got []string
	for _, o := range m.offers {
		got = append(got, strings.Join([]string{o.zone, o.capacityType, priceOf(o)}, " "))
	}
	if diff := cmp.Diff([]string{"a on-demand 0.2", "b on-demand 0.3", "b spot 0.1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := newMachine("x", "other")
	in.addOffers(&other, "a", &Options{})
	if len(other.offers) > 0 {
		t.Errorf("a machine without a price has offers %v", other.offers)
	}
}

// OpenStack has memory in MiB, and disks in GiB, of which the file system keeps a part.
func TestUnitsOfOpenStack(t *testing.T) {
	const disk = string(corev1.ResourceEphemeralStorage)
	for name, tc := range map[string]struct {
		given string
		zones []string
		want  what
	}{
		"m1.small":    {`{"RAM":2048,"Disk":20,"VCPUs":1}`, nil, what{CPU: "1", Memory: 2048, Arch: "amd64", Capacity: map[string]string{disk: "19Gi"}}},
		"no disk":     {`{"RAM":512,"VCPUs":1}`, nil, what{CPU: "1", Memory: 512, Arch: "amd64"}},
		"ephemeral":   {`{"RAM":2048,"Disk":100,"Ephemeral":40,"VCPUs":1}`, nil, what{CPU: "1", Memory: 2048, Arch: "amd64", Storage: "40", Capacity: map[string]string{disk: "95Gi"}}},
		"two zones":   {`{"RAM":2048,"VCPUs":1}`, []string{"nova", "west"}, what{CPU: "1", Memory: 2048, Arch: "amd64", Zones: "nova,west"}},
		"arm":         {`{"RAM":2048,"VCPUs":1,"Properties":{"hw_architecture":"aarch64"}}`, nil, what{CPU: "1", Memory: 2048, Arch: "arm64"}},
		"arm of Nova": {`{"RAM":2048,"VCPUs":1,"Properties":{"capabilities:cpu_arch":"aarch64"}}`, nil, what{CPU: "1", Memory: 2048, Arch: "arm64"}},
		"arm, newer":  {`{"RAM":2048,"VCPUs":1,"Properties":{"hw:architecture":"aarch64"}}`, nil, what{CPU: "1", Memory: 2048, Arch: "arm64"}},
		"as a text":   {`{"RAM":2048,"VCPUs":1,"Properties":"hw_architecture='aarch64', resources:VGPU='1'"}`, nil, what{CPU: "1", Memory: 2048, Arch: "arm64", Capacity: map[string]string{"nvidia.com/gpu": "1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			given := flavor{Name: name}
			if err := json.Unmarshal([]byte(tc.given), &given); err != nil {
				t.Fatal(err)
			}
			m, err := given.machine("x", &Options{Zones: tc.zones})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, whatOf(m)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
