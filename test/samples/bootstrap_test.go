// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/counts"
)

// taint keeps Pods away from a Node until Karpenter has registered it.
var taint = karpv1.UnregisteredNoExecuteTaint.ToString()

// checkKubelet checks that the arguments of a kubelet match the spec.kubelet of a template.
func checkKubelet(t *testing.T, kubelet *v1alpha1.KubeletConfiguration, arguments map[string]string) {
	t.Helper()
	if kubelet == nil || kubelet.MaxPods == nil {
		t.Fatal("the sample has no spec.kubelet.maxPods")
	}
	want := map[string]map[string]string{
		"max-pods":        {strconv.Itoa(int(*kubelet.MaxPods)): ""},
		"system-reserved": {}, "kube-reserved": {}, "eviction-hard": {},
	}
	for name, quantity := range kubelet.SystemReserved {
		want["system-reserved"][string(name)] = quantity.String()
	}
	for name, quantity := range kubelet.KubeReserved {
		want["kube-reserved"][string(name)] = quantity.String()
	}
	for signal, threshold := range kubelet.EvictionHard {
		want["eviction-hard"][signal] = string(threshold)
	}
	got := map[string]map[string]string{}
	for name := range want {
		got[name] = pairs(arguments[name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the kubelet's arguments are not those of spec.kubelet (-want +got):\n%s", diff)
	}
}

// pairs reads a value of a kubelet's argument: k1=v1,k2=v2 or k1<v1,k2<v2.
func pairs(value string) map[string]string {
	result := map[string]string{}
	for pair := range strings.SplitSeq(value, ",") {
		if i := strings.IndexAny(pair, "=<"); i >= 0 {
			result[pair[:i]] = pair[i+1:]
		} else {
			result[pair] = ""
		}
	}
	return result
}

// arguments reads arguments of the form name=value, with or without dashes.
func arguments(words []string) map[string]string {
	result := map[string]string{}
	for _, word := range words {
		name, value, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		result[name] = value
	}
	return result
}

// kubeadmArguments returns the kubelet's arguments in the spec of a KubeadmConfig,
// which must have the taint.
func kubeadmArguments(t *testing.T, spec map[string]any) map[string]string {
	t.Helper()
	registration, _, err := unstructured.NestedMap(spec, "joinConfiguration", "nodeRegistration")
	if err != nil {
		t.Fatal(err)
	}
	taints, _, err := unstructured.NestedSlice(registration, "taints")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{map[string]any{"key": karpv1.UnregisteredTaintKey, "effect": "NoExecute"}}, taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	list, _, err := unstructured.NestedSlice(registration, "kubeletExtraArgs")
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]string{}
	for _, item := range list {
		fields := item.(map[string]any)
		result[fields["name"].(string)] = fields["value"].(string)
	}
	return result
}

func TestRKE2(t *testing.T) {
	s := apply(t, "rke2")
	all, number := s.generate(t)
	for _, m := range all {
		taints, _, err := unstructured.NestedStringSlice(m.bootstrap, "agentConfig", "nodeTaints")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{taint}, taints); diff != "" {
			t.Errorf("%s: nodeTaints (-want +got):\n%s", m, diff)
		}
		words, _, err := unstructured.NestedStringSlice(m.bootstrap, "agentConfig", "kubelet", "extraArgs")
		if err != nil {
			t.Fatal(err)
		}
		checkKubelet(t, s.template.Spec.Kubelet, arguments(words))
		if got := arguments(words)["cloud-provider"]; got != "external" {
			t.Errorf("%s: the cloud provider of the base is now %q", m, got)
		}
		checkSize(t, m)
	}
	counts.Print(t, "sample rke2: "+describe(number))
}

func TestCloudInit(t *testing.T) {
	s := apply(t, "cloud-init")
	all, number := s.generate(t)
	name := *s.template.Spec.Template.Spec.Bootstrap.DataSecretName
	for _, m := range all {
		if got := m.machine.Bootstrap.DataSecretName; got == nil || *got != name {
			t.Errorf("%s: the Secret is %v", m, got)
		}
		checkSize(t, m)
	}
	secret := &corev1.Secret{}
	if err := apiServer.Get(t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	words := kubeletCommand(t, string(secret.Data["value"]))
	if got := arguments(words)["register-with-taints"]; got != taint {
		t.Errorf("the kubelet registers with %q, want %q", got, taint)
	}
	checkKubelet(t, s.template.Spec.Kubelet, arguments(words))
	counts.Print(t, "sample cloud-init: "+describe(number))
}

// kubeletCommand returns the words of the command with which systemd starts the kubelet, from
// cloud-init user data.
func kubeletCommand(t *testing.T, userData string) []string {
	t.Helper()
	if !strings.HasPrefix(userData, "#cloud-config\n") {
		t.Error("cloud-init accepts only a cloud-config that starts with #cloud-config")
	}
	var config struct {
		WriteFiles []struct{ Path, Permissions, Content string } `json:"write_files"`
		RunCmd     []string                                      `json:"runcmd"`
	}
	if err := yaml.UnmarshalStrict([]byte(userData), &config); err != nil {
		t.Fatalf("the user data is not a cloud-config: %v", err)
	}
	written := map[string]bool{}
	var command []string
	for _, file := range config.WriteFiles {
		written[file.Path] = true
		if _, after, found := strings.Cut(file.Content, "ExecStart=/usr/bin/kubelet"); found {
			// In a unit, a backslash continues the line and %% is a percent sign.
			command = strings.Fields(strings.NewReplacer("\\\n", " ", "%%", "%").Replace(after))
		}
	}
	for _, name := range []string{"config", "bootstrap-kubeconfig"} {
		if path := arguments(command)[name]; !written[path] {
			t.Errorf("--%s is %q, which is not one of the written files %v", name, path, slices.Sorted(maps.Keys(written)))
		}
	}
	return command
}
