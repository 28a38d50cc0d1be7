// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

func TestResources(t *testing.T) {
	machine := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("80Gi"),
	}
	for name, tc := range map[string]struct {
		arguments []bootstrapv1.Arg
		capacity  map[string]string
		want      map[string]string
	}{
		"the kubelet's defaults": {
			capacity: map[string]string{"cpu": "2", "memory": "8Gi", "ephemeral-storage": "80Gi", "pods": "110"},
			want:     map[string]string{"cpu": "2", "memory": "8092Mi", "ephemeral-storage": "77309411200", "pods": "110"},
		},
		"all arguments": {
			arguments: arguments("max-pods", "20", "system-reserved", "cpu=100m,memory=200Mi", "kube-reserved", "cpu=80m,memory=300Mi,ephemeral-storage=1Gi",
				"eviction-hard", "memory.available<5%,nodefs.available<10%,nodefs.inodesFree<5%"),
			capacity: map[string]string{"cpu": "2", "memory": "8Gi", "ephemeral-storage": "80Gi", "pods": "20"},
			want:     map[string]string{"cpu": "1820m", "memory": "7636149856", "ephemeral-storage": "76235669376", "pods": "20"},
		},
		"more than there is": {
			arguments: arguments("system-reserved", "cpu=3", "kube-reserved", "example.com/other=1", "eviction-hard", ""),
			capacity:  map[string]string{"cpu": "2", "memory": "8Gi", "ephemeral-storage": "80Gi", "pods": "110"},
			want:      map[string]string{"cpu": "0", "memory": "8Gi", "ephemeral-storage": "80Gi", "pods": "110"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			join, err := Read(bootstrapData(t, "1.36.3", bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: tc.arguments}), hostname)
			if err != nil {
				t.Fatal(err)
			}
			capacity, allocatable := join.Resources(machine)
			for what, pair := range map[string][2]any{"capacity": {tc.capacity, capacity}, "allocatable": {tc.want, allocatable}} {
				want := lo.MapEntries(pair[0].(map[string]string), func(name, quantity string) (string, string) { return name, canonical(resource.MustParse(quantity)) })
				got := lo.MapEntries(pair[1].(corev1.ResourceList), func(name corev1.ResourceName, quantity resource.Quantity) (string, string) {
					return string(name), canonical(quantity)
				})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// canonical returns a quantity without its format.
func canonical(quantity resource.Quantity) string { return quantity.AsDec().String() }

func quoted(text string) string { return strconv.Quote(text) }

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func packed(t *testing.T, text string) string {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(buffer.Bytes())
}
