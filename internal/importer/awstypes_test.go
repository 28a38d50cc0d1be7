// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// The numbers are those that Amazon publishes for its CNI (amazon-vpc-cni-k8s: misc/eni-max-pods.txt). For types that
// are not in its list, they follow from the same formula, with the interfaces of the default network card.
func TestPodsWithSeveralNetworkCards(t *testing.T) {
	content, err := os.ReadFile("testdata/aws-cards/instance-types.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ InstanceTypes []awsType }
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for i := range file.InstanceTypes {
		got[file.InstanceTypes[i].InstanceType] = podsOf(t, &file.InstanceTypes[i])
	}
	want := map[string]int64{
		"c6in.32xlarge": 394, "g6e.48xlarge": 492, "hpc6id.32xlarge": 51, "hpc7a.96xlarge": 100, "p4d.24xlarge": 737, "p5.48xlarge": 100, "trn1.32xlarge": 247,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestPodsOfTheDefaultCard(t *testing.T) {
	for name, tc := range map[string]struct {
		network string
		want    int64
	}{
		"no cards":            {`{"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 10}`, 29},
		"one card":            {`{"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 10, "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3}]}`, 29},
		"the second card":     {`{"MaximumNetworkInterfaces": 5, "Ipv4AddressesPerInterface": 10, "DefaultNetworkCardIndex": 1, "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3}, {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 2}]}`, 20},
		"in any order":        {`{"MaximumNetworkInterfaces": 5, "Ipv4AddressesPerInterface": 10, "NetworkCards": [{"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 3}, {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 2}]}`, 20},
		"no default card":     {`{"MaximumNetworkInterfaces": 5, "Ipv4AddressesPerInterface": 10, "DefaultNetworkCardIndex": 7, "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 5}]}`, 0},
		"a card without any":  {`{"MaximumNetworkInterfaces": 5, "Ipv4AddressesPerInterface": 10, "NetworkCards": [{"NetworkCardIndex": 0}]}`, 0},
		"no addresses at all": {`{"MaximumNetworkInterfaces": 5}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType := awsType{InstanceType: "m5.large"}
			instanceType.ProcessorInfo.SupportedArchitectures = []string{"x86_64"}
			if err := json.Unmarshal([]byte(tc.network), &instanceType.NetworkInfo); err != nil {
				t.Fatal(err)
			}
			if got := podsOf(t, &instanceType); got != tc.want {
				t.Errorf("got %d Pods, want %d", got, tc.want)
			}
		})
	}
}

// podsOf returns how many Pods a type has, and 0 if it cannot be imported.
func podsOf(t *testing.T, instanceType *awsType) int64 {
	t.Helper()
	in := &awsInput{inventory: &inventory{skipped: skips{}}}
	m, err := in.machine(instanceType, &Options{})
	if err != nil {
		return 0
	}
	pods := m.capacity[corev1.ResourcePods]
	return pods.Value()
}
