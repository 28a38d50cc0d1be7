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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/test/harness/counts"
)

// taint keeps Pods away from a Node until Karpenter has registered it.
var taint = karpv1.UnregisteredNoExecuteTaint.ToString()

// checkKubelet checks that the arguments of a kubelet are what the operator plans with.
func checkKubelet(t *testing.T, s *sample, m made, arguments map[string]string) {
	t.Helper()
	kubelet := catalog.KubeletOf(s.template.Spec.Kubelet, m.instanceType.Capacity)
	if kubelet == nil || kubelet.MaxPods == nil {
		t.Fatal("neither spec.kubelet.maxPods nor capacity.pods is set")
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
		t.Errorf("the kubelet's arguments are not what the operator plans with (-want +got):\n%s", diff)
	}
}

// pairs reads a value of a kubelet's argument: k1=v1,k2=v2 or k1<v1,k2<v2.
func pairs(value string) map[string]string {
	result := map[string]string{}
	for pair := range strings.SplitSeq(value, ",") {
		if pair == "" {
			continue
		}
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

// checkTaint checks the taints with which a Node registers.
func checkTaint(t *testing.T, taints ...string) {
	t.Helper()
	if diff := cmp.Diff([]string{taint}, taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
}

// rke2Arguments returns the kubelet's arguments in the spec of an RKE2Config.
func rke2Arguments(t *testing.T, spec map[string]any) map[string]string {
	t.Helper()
	return rancherArguments(t, nested(t, spec, "agentConfig"), "kubelet", "extraArgs")
}

// k3sArguments returns the kubelet's arguments in the spec of a KThreesConfig.
func k3sArguments(t *testing.T, spec map[string]any) map[string]string {
	t.Helper()
	return rancherArguments(t, nested(t, spec, "agentConfig"), "kubeletArgs")
}

// rancherArguments returns the kubelet's arguments at a path of the configuration of an agent.
func rancherArguments(t *testing.T, agent map[string]any, path ...string) map[string]string {
	t.Helper()
	taints, _, err := unstructured.NestedStringSlice(agent, "nodeTaints")
	if err != nil {
		t.Fatal(err)
	}
	checkTaint(t, taints...)
	words, _, err := unstructured.NestedStringSlice(agent, path...)
	if err != nil {
		t.Fatal(err)
	}
	result := arguments(words)
	if got := result["cloud-provider"]; got != "external" {
		t.Errorf("the cloud provider of the base is now %q", got)
	}
	return result
}

// eksArguments returns the kubelet's arguments in the spec of an EKSConfig.
func eksArguments(t *testing.T, spec map[string]any) map[string]string {
	t.Helper()
	result, found, err := unstructured.NestedStringMap(spec, "kubeletExtraArgs")
	if err != nil || !found {
		t.Fatalf("there is no kubeletExtraArgs: %v", err)
	}
	checkTaint(t, result["register-with-taints"])
	if given, is := result["eviction-hard"]; is {
		t.Errorf("eviction-hard is %s, but the image sets it", given)
	}
	// The image sets the thresholds (github.com/awslabs/amazon-eks-ami: bootstrap.sh).
	result["eviction-hard"] = "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%"
	return result
}

// nodeadmArguments returns the configuration of the kubelet in the spec of a NodeadmConfig as
// arguments.
func nodeadmArguments(t *testing.T, spec map[string]any) map[string]string {
	t.Helper()
	return configured(t, nested(t, spec, "kubelet", "config"))
}

// talosArguments returns the configuration of the kubelet in the spec of a TalosConfig as arguments.
func talosArguments(t *testing.T, spec map[string]any) map[string]string {
	t.Helper()
	patches, _, err := unstructured.NestedStringSlice(spec, "strategicPatches")
	if err != nil {
		t.Fatal(err)
	}
	if len(patches) != 2 {
		t.Fatalf("%d strategicPatches, want that of the base and that of the operator", len(patches))
	}
	config := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(patches[1]), &config); err != nil {
		t.Fatalf("%v in:\n%s", err, patches[1])
	}
	return configured(t, nested(t, config, "machine", "kubelet", "extraConfig"))
}

// kubeletConfiguration is the part of kubelet.config.k8s.io/v1beta1 that samples set.
type kubeletConfiguration struct {
	RegisterWithTaints []corev1.Taint    `json:"registerWithTaints"`
	MaxPods            int32             `json:"maxPods"`
	SystemReserved     map[string]string `json:"systemReserved"`
	KubeReserved       map[string]string `json:"kubeReserved"`
	EvictionHard       map[string]string `json:"evictionHard"`
}

// configured returns the configuration of a kubelet as its arguments. It must have the taint.
func configured(t *testing.T, config map[string]any) map[string]string {
	t.Helper()
	c := kubeletConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(config, &c, true); err != nil {
		t.Fatalf("it is not the configuration of a kubelet: %v in %v", err, config)
	}
	var taints []string
	for i := range c.RegisterWithTaints {
		taints = append(taints, c.RegisterWithTaints[i].ToString())
	}
	checkTaint(t, taints...)
	join := func(values map[string]string, separator string) string {
		var list []string
		for name, value := range values {
			list = append(list, name+separator+value)
		}
		return strings.Join(list, ",")
	}
	return map[string]string{
		"max-pods":        strconv.Itoa(int(c.MaxPods)),
		"system-reserved": join(c.SystemReserved, "="),
		"kube-reserved":   join(c.KubeReserved, "="),
		"eviction-hard":   join(c.EvictionHard, "<"),
	}
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
	for _, m := range all {
		checkKubelet(t, s, m, arguments(words))
	}
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
