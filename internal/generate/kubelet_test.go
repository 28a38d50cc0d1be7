// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// kubeadm is the path of nodeRegistration in a KubeadmConfigTemplate.
const kubeadm = "/spec/template/spec/joinConfiguration/nodeRegistration"

// kubeadmBase returns a KubeadmConfigTemplate with a spec in YAML.
func kubeadmBase(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	base := fixture.Bootstrap()
	base.SetKind("KubeadmConfigTemplate")
	base.Object["spec"] = map[string]any{"template": map[string]any{"spec": fixture.YAML(t, spec)}}
	return base
}

// withKubeadm returns what a template with a KubeadmConfigTemplate generates for its spot offering.
func withKubeadm(t *testing.T, base *unstructured.Unstructured, edit func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceType)) *Generated {
	t.Helper()
	template := fixture.Template()
	template.Spec.Template.Spec.Bootstrap.ConfigRef.Kind = base.GetKind()
	edited := fixture.Catalog().Spec.InstanceTypes[0]
	edit(template, &edited)
	return generateFrom(t, template, Bases{Infrastructure: fixture.Infrastructure(), Bootstrap: base}, fixture.Spot, func(it *v1alpha1.InstanceType) { *it = edited })
}

func bootstrapPatch(op, path, value string) v1alpha1.Patch {
	return v1alpha1.Patch{Target: v1alpha1.PatchTargetBootstrap, JSONPatches: []v1alpha1.JSONPatch{
		{Op: op, Path: path, Value: &apiextensionsv1.JSON{Raw: []byte(value)}},
	}}
}

// Patches apply to the base. The taint and the arguments for spec.kubelet come after them, so no patch
// removes them.
func TestPatchesKeepTaintAndArguments(t *testing.T) {
	const taint = `taints: [{key: karpenter.sh/unregistered, effect: NoExecute}]`
	for name, tc := range map[string]struct {
		base  string
		patch v1alpha1.Patch
		want  string
	}{
		"nodeRegistration is replaced": {
			base: `{joinConfiguration: {nodeRegistration: {name: x}}}`, patch: bootstrapPatch("add", kubeadm, `{"name":"node"}`),
			want: `{name: node, ` + taint + `, kubeletExtraArgs: [{name: max-pods, value: "58"}]}`,
		},
		"the taints are replaced": {
			base: `{joinConfiguration: {nodeRegistration: {}}}`, patch: bootstrapPatch("add", kubeadm+"/taints", `[{"key":"a","effect":"NoSchedule"}]`),
			want: `{taints: [{key: a, effect: NoSchedule}, {key: karpenter.sh/unregistered, effect: NoExecute}], kubeletExtraArgs: [{name: max-pods, value: "58"}]}`,
		},
		"no taints": {
			base: `{joinConfiguration: {nodeRegistration: {}}}`, patch: bootstrapPatch("add", kubeadm+"/taints", `[]`),
			want: `{` + taint + `, kubeletExtraArgs: [{name: max-pods, value: "58"}]}`,
		},
		"the taints become an argument": {
			base: `{joinConfiguration: {nodeRegistration: {}}}`, patch: bootstrapPatch("add", kubeadm+"/kubeletExtraArgs", `[{"name":"register-with-taints","value":"a=b:NoSchedule"}]`),
			want: `{kubeletExtraArgs: [{name: register-with-taints, value: "a=b:NoSchedule,karpenter.sh/unregistered:NoExecute"}, {name: max-pods, value: "58"}]}`,
		},
		"an argument that spec.kubelet sets": {
			base: `{joinConfiguration: {nodeRegistration: {}}}`, patch: bootstrapPatch("add", kubeadm+"/kubeletExtraArgs", `[{"name":"max-pods","value":"250"},{"name":"v","value":"4"}]`),
			want: `{` + taint + `, kubeletExtraArgs: [{name: v, value: "4"}, {name: max-pods, value: "58"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			generated := withKubeadm(t, kubeadmBase(t, tc.base), func(template *v1alpha1.KarpenterMachineTemplate, _ *v1alpha1.InstanceType) {
				template.Spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(int32(58))}
				template.Spec.Patches = []v1alpha1.Patch{tc.patch}
			})
			got, _, err := unstructured.NestedMap(generated.Objects[0].Object, strings.Split(strings.TrimPrefix(kubeadm, "/"), "/")...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fixture.YAML(t, tc.want), got); diff != "" {
				t.Errorf("nodeRegistration (-want +got):\n%s", diff)
			}
		})
	}
}

// A KubeadmConfigTemplate without spec.template is an empty one, to which patches add as to any other.
func TestEmptyKubeadmConfigTemplate(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"no spec":          func(object map[string]any) { delete(object, "spec") },
		"no spec.template": func(object map[string]any) { object["spec"] = map[string]any{} },
	} {
		t.Run(name, func(t *testing.T) {
			base := kubeadmBase(t, `{}`)
			change(base.Object)
			generated := withKubeadm(t, base, func(template *v1alpha1.KarpenterMachineTemplate, _ *v1alpha1.InstanceType) {
				template.Spec.Patches = []v1alpha1.Patch{bootstrapPatch("add", "/spec/template/spec/preKubeadmCommands", `["x"]`)}
			})
			want := fixture.YAML(t, `{template: {spec: {preKubeadmCommands: [x], joinConfiguration: {nodeRegistration: {taints: [{key: karpenter.sh/unregistered, effect: NoExecute}]}}}}}`)
			if diff := cmp.Diff(want, generated.Objects[0].Object["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each instance type has its own arguments, also if nothing else distinguishes their bootstrap templates.
func TestArgumentsOfEachInstanceType(t *testing.T) {
	template, base := fixture.Template(), kubeadmBase(t, `{}`)
	template.Spec.Template.Spec.Bootstrap.ConfigRef.Kind = base.GetKind()
	listed := fixture.Catalog()
	small := &listed.Spec.InstanceTypes[0]
	large := *small.DeepCopy()
	large.Name = "m5.xlarge"
	small.Capacity["pods"], large.Capacity["pods"] = resource.MustParse("29"), resource.MustParse("58")
	listed.Spec.InstanceTypes = append(listed.Spec.InstanceTypes, large)
	generator, err := NewGenerator(fixture.Served, template, Bases{Infrastructure: fixture.Infrastructure(), Bootstrap: base})
	if err != nil {
		t.Fatal(err)
	}
	types, _ := catalog.TypesOf(template, nil, listed)
	got := map[string]any{}
	for i := range types {
		generated, err := generator.Generate(&types[i], types[i].Find(fixture.Spot.Zone, fixture.Spot.CapacityType))
		if err != nil {
			t.Fatal(err)
		}
		got[types[i].Name], _, _ = unstructured.NestedSlice(generated.Objects[0].Object, strings.Split(strings.TrimPrefix(kubeadm+"/kubeletExtraArgs", "/"), "/")...)
	}
	argument := func(pods string) []any { return []any{map[string]any{"name": "max-pods", "value": pods}} }
	if diff := cmp.Diff(map[string]any{"m5.large": argument("29"), "m5.xlarge": argument("58")}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func quantities(pairs ...string) map[corev1.ResourceName]resource.Quantity {
	result := map[corev1.ResourceName]resource.Quantity{}
	for i := 0; i < len(pairs); i += 2 {
		result[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return result
}

// Only what changes what the kubelet does leads to drift.
func TestHashesOfKubelet(t *testing.T) {
	const none, args = `{}`, `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: "250"}]}}}`
	type edit = func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceType)
	kubelet := func(kubelet v1alpha1.KubeletConfiguration) edit {
		return func(t *v1alpha1.KarpenterMachineTemplate, _ *v1alpha1.InstanceType) { t.Spec.Kubelet = &kubelet }
	}
	both := func(edits ...edit) edit {
		return func(t *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) {
			for _, edit := range edits {
				edit(t, it)
			}
		}
	}
	has := func(name, value string) edit {
		return func(_ *v1alpha1.KarpenterMachineTemplate, it *v1alpha1.InstanceType) {
			it.Capacity[corev1.ResourceName(name)] = resource.MustParse(value)
		}
	}
	nothing := func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceType) {}
	formula := kubelet(v1alpha1.KubeletConfiguration{KubeReservedFormula: v1alpha1.KubeReservedGKE})
	for name, tc := range map[string]struct {
		base          string
		before, after edit
		want          []string
	}{
		"an empty configuration":             {none, nothing, kubelet(v1alpha1.KubeletConfiguration{}), nil},
		"empty reservations":                 {none, nothing, kubelet(v1alpha1.KubeletConfiguration{SystemReserved: quantities(), KubeReserved: quantities()}), nil},
		"the default of Pods as capacity":    {none, nothing, has("pods", "110"), nil},
		"the default of Pods in kubelet":     {none, nothing, kubelet(v1alpha1.KubeletConfiguration{MaxPods: new(int32(110))}), nil},
		"other Pods":                         {none, nothing, has("pods", "58"), []string{"kubelet"}},
		"the Pods that the base sets":        {args, nothing, has("pods", "250"), nil},
		"the default instead of the base":    {args, nothing, has("pods", "110"), []string{"kubelet"}},
		"another notation of a quantity":     {none, kubelet(v1alpha1.KubeletConfiguration{KubeReserved: quantities("cpu", "1")}), kubelet(v1alpha1.KubeletConfiguration{KubeReserved: quantities("cpu", "1000m")}), nil},
		"no thresholds":                      {none, nothing, kubelet(v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{}}), []string{"kubelet"}},
		"a formula":                          {none, nothing, formula, []string{"kubelet"}},
		"a corrected memory with a formula":  {none, formula, both(formula, has("memory", "7680Mi")), nil},
		"other Pods with a formula":          {none, formula, both(formula, has("pods", "58")), []string{"kubelet"}},
		"a value in addition to the formula": {none, formula, kubelet(v1alpha1.KubeletConfiguration{KubeReservedFormula: v1alpha1.KubeReservedGKE, KubeReserved: quantities("cpu", "2")}), []string{"kubelet"}},
		"another formula":                    {none, formula, kubelet(v1alpha1.KubeletConfiguration{KubeReservedFormula: v1alpha1.KubeReservedEKS}), []string{"kubelet"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := withKubeadm(t, kubeadmBase(t, tc.base), tc.before), withKubeadm(t, kubeadmBase(t, tc.base), tc.after)
			if diff := cmp.Diff(tc.want, parts(before.Hashes, after.Hashes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
