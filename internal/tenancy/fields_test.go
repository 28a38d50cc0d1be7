// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Patches cannot set any of these fields, which are spelt as the providers spell them.
func TestFieldsThatOnlyABaseSets(t *testing.T) {
	for field, value := range map[string]any{
		"providerID": "aws:///a/i-1", "providerIDList": []any{"aws:///a/i-1"}, "instanceID": "i-1", "instanceUUID": "4210", "hardwareName": "rack-1",
		"virtualMachineID": int64(100), "systemID": "abc", "ownerReferences": []any{map[string]any{"kind": "Cluster"}}, "finalizers": []any{"a/b"},
		"generateType": "controlplane", "server": "evil.example.com", "thumbprint": "AA",
		"hostPath": "/", "hostNetwork": true, "hostPID": true, "hostIPC": true, "privileged": true,
		"clusterName": "other", "namespace": "other", "targetNamespace": "other",
	} {
		t.Run(field, func(t *testing.T) {
			base, patched := kubeadm(t, `{template: {}}`, nil), kubeadm(t, `{template: {spec: {list: [{}]}}}`, nil)
			patched.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["list"].([]any)[0].(map[string]any)[field] = value
			check(t, allowedBy(t, "", "", base).Generated(base, patched), v1alpha1.ReasonFieldNotAllowed, "may not set spec.template.spec.list[]."+field)
		})
	}
}

// Everything that a decision depends on changes the key, and nothing else does.
func TestKey(t *testing.T) {
	of := func(change func(*Allowed)) string {
		allowed := Allowed{Cluster: served, Own: NewOwn()}
		change(&allowed)
		return allowed.Key()
	}
	template := func(name string) Template {
		return Template{Kind: schema.GroupKind{Group: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate"}, Name: name}
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*Allowed){
		"nothing":              func(*Allowed) {},
		"a template":           func(a *Allowed) { a.Own.Templates.Insert(template("a")) },
		"another template":     func(a *Allowed) { a.Own.Templates.Insert(template("b")) },
		"both":                 func(a *Allowed) { a.Own.Templates.Insert(template("a"), template("b")) },
		"one of another kind":  func(a *Allowed) { a.Own.Templates.Insert(Template{Name: "a"}) },
		"a control plane's":    func(a *Allowed) { a.Own.ControlPlane.Insert(template("a")) },
		"a Secret":             func(a *Allowed) { a.Own.Secrets.Insert("a") },
		"a Secret by a label":  func(a *Allowed) { a.Own.Labelled.Insert("a") },
		"a label of a pattern": func(a *Allowed) { a.Pattern = clusterv1.ObjectMeta{Labels: map[string]string{"a": "b"}} },
		"another value":        func(a *Allowed) { a.Pattern = clusterv1.ObjectMeta{Labels: map[string]string{"a": "c"}} },
		"an annotation":        func(a *Allowed) { a.Pattern = clusterv1.ObjectMeta{Annotations: map[string]string{"a": "b"}} },
	} {
		key := of(change)
		if other, known := seen[key]; known {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[key] = name
		for range 200 {
			if again := of(change); again != key {
				t.Fatalf("%s: the key is %s, and then %s", name, key, again)
			}
		}
	}
}
