// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Templates and bases are shared with the caches. Generation does not change them, and neither does a change of what is
// generated, such as by the answer to its creation.
func TestSharedObjectsStayAsTheyAre(t *testing.T) {
	kubeadm := func() *unstructured.Unstructured {
		return kubeadmBase(t, `{template: {spec: {files: [{path: /a}], joinConfiguration: {nodeRegistration: {taints: [{key: a, effect: NoSchedule}]}}}}}`)
	}
	pool := func() *unstructured.Unstructured {
		return fixture.Base(t, "AWSMachinePool", `{instanceType: none, template: {spec: {instanceType: none, disks: [{name: a}]}}}`)
	}
	for name, tc := range map[string]struct {
		template       *v1alpha1.KarpenterMachineTemplate
		infrastructure *unstructured.Unstructured
		bootstrap      *unstructured.Unstructured
	}{
		"patched":              {fixture.TemplateWithPatches(), fixture.Infrastructure(), fixture.Bootstrap()},
		"not patched":          {fixture.Template(), fixture.Infrastructure(), fixture.Bootstrap()},
		"of kubeadm":           {fixture.TemplateWithPatches(), fixture.Infrastructure(), kubeadm()},
		"a pool":               {fixture.PoolTemplate("AWSMachinePool"), pool(), fixture.Bootstrap()},
		"a pool, of kubeadm":   {fixture.PoolTemplate("AWSMachinePool"), pool(), kubeadm()},
		"a pool of a template": {fixture.PoolTemplate("AWSMachinePoolTemplate"), fixture.Base(t, "AWSMachinePoolTemplate", `{template: {spec: {tags: {a: b}}}}`), fixture.Bootstrap()},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &tc.template.Spec.Template
			spec.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Ready"}}
			spec.Spec.Bootstrap.ConfigRef.Kind = tc.bootstrap.GetKind()
			tc.template.Spec.ScalableResource.Annotations = map[string]string{"note": "hello"}
			bases := Bases{Infrastructure: tc.infrastructure, Bootstrap: tc.bootstrap}
			type shared struct {
				Template                  *v1alpha1.KarpenterMachineTemplate
				Infrastructure, Bootstrap *unstructured.Unstructured
			}
			want := shared{tc.template.DeepCopy(), tc.infrastructure.DeepCopy(), tc.bootstrap.DeepCopy()}
			generated := generateFrom(t, tc.template, bases, fixture.Spot)
			for _, object := range generated.Objects {
				scribble(reflect.ValueOf(object.Object))
			}
			scribble(reflect.ValueOf(generated.Resource.API()))
			if diff := cmp.Diff(want, shared{tc.template, tc.infrastructure, tc.bootstrap}); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

// scribble changes everything that can be reached from a value.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			scribble(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
			v.Index(i).SetZero()
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			scribble(v.MapIndex(key))
			v.SetMapIndex(key, reflect.Value{})
		}
	default:
		if v.CanSet() {
			v.SetZero()
		}
	}
}
