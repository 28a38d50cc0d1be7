// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func TestJoinTainted(t *testing.T) {
	kubelet := &v1alpha1.KubeletConfiguration{
		MaxPods:        new(int32(58)),
		SystemReserved: map[corev1.ResourceName]resource.Quantity{"memory": resource.MustParse("200Mi"), "cpu": resource.MustParse("100m")},
		KubeReserved:   map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("80m")},
		EvictionHard:   map[string]v1alpha1.EvictionThreshold{"memory.available": "5%", "nodefs.available": "10%"},
	}
	for name, tc := range map[string]struct {
		version, given, want string
		kubelet              *v1alpha1.KubeletConfiguration
	}{
		"nothing set": {version: "v1beta2", given: `{}`,
			want: `{joinConfiguration: {nodeRegistration: {taints: [{key: karpenter.sh/unregistered, effect: NoExecute}]}}}`},
		"kubelet durations": {version: "v1beta2", kubelet: kubelet, given: `{}`,
			want: `{joinConfiguration: {nodeRegistration: {taints: [{key: karpenter.sh/unregistered, effect: NoExecute}], kubeletExtraArgs: [
				{name: max-pods, value: "58"}, {name: system-reserved, value: "cpu=100m,memory=200Mi"}, {name: kube-reserved, value: "cpu=80m"},
				{name: eviction-hard, value: "memory.available<5%,nodefs.available<10%"}]}}}`},
		"existing settings stay": {version: "v1beta2", kubelet: &v1alpha1.KubeletConfiguration{MaxPods: new(int32(58))},
			given: `{preKubeadmCommands: [x], joinConfiguration: {discovery: {}, nodeRegistration: {taints: [{key: a, effect: NoSchedule}],
				kubeletExtraArgs: [{name: v, value: "4"}, {name: max-pods, value: "250"}, {name: v, value: "5"}]}}}`,
			want: `{preKubeadmCommands: [x], joinConfiguration: {discovery: {}, nodeRegistration: {taints: [{key: a, effect: NoSchedule}, {key: karpenter.sh/unregistered, effect: NoExecute}],
				kubeletExtraArgs: [{name: v, value: "4"}, {name: v, value: "5"}, {name: max-pods, value: "58"}]}}}`},
		"the taint exists": {version: "v1beta2",
			given: `{joinConfiguration: {nodeRegistration: {taints: [{key: karpenter.sh/unregistered, value: "true", effect: NoExecute}]}}}`,
			want:  `{joinConfiguration: {nodeRegistration: {taints: [{key: karpenter.sh/unregistered, value: "true", effect: NoExecute}]}}}`},
		"taints as an argument": {version: "v1beta2",
			given: `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: register-with-taints, value: "a=b:NoSchedule"}]}}}`,
			want:  `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: register-with-taints, value: "a=b:NoSchedule,karpenter.sh/unregistered:NoExecute"}]}}}`},
		"this taint as an argument": {version: "v1beta2",
			given: `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: register-with-taints, value: "karpenter.sh/unregistered=true:NoExecute"}]}}}`,
			want:  `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: register-with-taints, value: "karpenter.sh/unregistered=true:NoExecute"}]}}}`},
		"other taints as an argument": {version: "v1beta2",
			given: `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: register-with-taints, value: "a=b:NoExecute,karpenter.sh/unregistered:NoSchedule"}]}}}`,
			want:  `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: register-with-taints, value: "a=b:NoExecute,karpenter.sh/unregistered:NoSchedule,karpenter.sh/unregistered:NoExecute"}]}}}`},
		"another taint with the effect": {version: "v1beta2",
			given: `{joinConfiguration: {nodeRegistration: {taints: [{key: a, effect: NoExecute}]}}}`,
			want:  `{joinConfiguration: {nodeRegistration: {taints: [{key: a, effect: NoExecute}, {key: karpenter.sh/unregistered, effect: NoExecute}]}}}`},
		"the taint with another effect": {version: "v1beta2",
			given: `{joinConfiguration: {nodeRegistration: {taints: [{key: karpenter.sh/unregistered, effect: NoSchedule}]}}}`,
			want:  `{joinConfiguration: {nodeRegistration: {taints: [{key: karpenter.sh/unregistered, effect: NoSchedule}, {key: karpenter.sh/unregistered, effect: NoExecute}]}}}`},
		"v1beta1 has a map": {version: "v1beta1", kubelet: kubelet,
			given: `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {v: "4", max-pods: "250"}}}}`,
			want: `{joinConfiguration: {nodeRegistration: {taints: [{key: karpenter.sh/unregistered, effect: NoExecute}], kubeletExtraArgs: {v: "4", max-pods: "58",
				system-reserved: "cpu=100m,memory=200Mi", kube-reserved: "cpu=80m", eviction-hard: "memory.available<5%,nodefs.available<10%"}}}}`},
		"no threshold at all": {version: "v1beta2", kubelet: &v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{}}, given: `{}`,
			want: `{joinConfiguration: {nodeRegistration: {taints: [{key: karpenter.sh/unregistered, effect: NoExecute}], kubeletExtraArgs: [{name: eviction-hard, value: ""}]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"template": map[string]any{"spec": fixture.YAML(t, tc.given)}}
			if err := joinTainted(tc.version, spec, kubeletArguments(tc.kubelet)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fixture.YAML(t, tc.want), spec["template"].(map[string]any)["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJoinTaintedBadInput(t *testing.T) {
	for given, want := range map[string]string{
		`{joinConfiguration: {nodeRegistration: x}}`:                                         "spec.template.spec.joinConfiguration.nodeRegistration",
		`{joinConfiguration: {nodeRegistration: {taints: x}}}`:                               "nodeRegistration.taints",
		`{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {v: "4"}}}}`:              "kubeletExtraArgs",
		`{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: v, value: 4}]}}}`: "kubeletExtraArgs[0]: expected a name and a value",
		`{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{value: x}]}}}`:          "kubeletExtraArgs[0]: expected a name and a value",
		`{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{v: 4}]}}}`:              "kubeletExtraArgs[0]: expected a name and a value, found map[v:4]",
	} {
		spec := map[string]any{"template": map[string]any{"spec": fixture.YAML(t, given)}}
		if err := joinTainted("v1beta2", spec, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", given, err, want)
		}
	}
}
