// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func taint(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

func poolWith(name string, taints, startup []corev1.Taint) karpv1.NodePool {
	pool := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Template.Spec.Taints, pool.Spec.Template.Spec.StartupTaints = taints, startup
	return pool
}

// Karpenter plans with the taints of NodePools only. An offering whose Nodes have others is not for the NodePool.
func TestOfferingsWithTaints(t *testing.T) {
	gpu, other := taint("nvidia.com/gpu", "true", corev1.TaintEffectNoSchedule), taint("example.com/other", "", corev1.TaintEffectNoExecute)
	machineTaint := func(of corev1.Taint, propagation clusterv1.MachineTaintPropagation) func(*clusterv1.MachineDeployment) {
		return func(md *clusterv1.MachineDeployment) {
			md.Spec.Template.Spec.Taints = append(md.Spec.Template.Spec.Taints, clusterv1.MachineTaint{Key: of.Key, Value: of.Value, Effect: of.Effect, Propagation: propagation})
		}
	}
	always, atStart := clusterv1.MachineTaintPropagationAlways, clusterv1.MachineTaintPropagationOnInitialization
	for name, tc := range map[string]struct {
		annotation      string
		change          func(*clusterv1.MachineDeployment)
		taints, startup []corev1.Taint
		want            string // part of the problem; empty if the offering is available
		wantInvalid     string // part of the problem with the MachineDeployment
	}{
		"none":                      {},
		"none, but the pool has":    {taints: []corev1.Taint{gpu}},
		"an annotation":             {annotation: "nvidia.com/gpu=true:NoSchedule", want: "offering md/on-demand: its Nodes join with the taint nvidia.com/gpu=true:NoSchedule, which no NodePool of the template has, so that Karpenter does not choose it: add the taint to spec.template.spec.taints or startupTaints of NodePool pool"},
		"an annotation of the pool": {annotation: "nvidia.com/gpu=true:NoSchedule", taints: []corev1.Taint{other, gpu}},
		"an annotation of a taint that is removed": {annotation: "nvidia.com/gpu=true:NoSchedule", startup: []corev1.Taint{gpu}},
		"another value":                     {annotation: "nvidia.com/gpu=true:NoSchedule", taints: []corev1.Taint{taint(gpu.Key, "false", gpu.Effect)}, want: "nvidia.com/gpu=true:NoSchedule"},
		"another effect":                    {annotation: "nvidia.com/gpu=true:NoSchedule", taints: []corev1.Taint{taint(gpu.Key, "true", corev1.TaintEffectNoExecute)}, want: "nvidia.com/gpu=true:NoSchedule"},
		"one of two":                        {annotation: " nvidia.com/gpu=true:NoSchedule, example.com/other:NoExecute", taints: []corev1.Taint{gpu}, want: "the taint example.com/other:NoExecute"},
		"both of two":                       {annotation: "nvidia.com/gpu=true:NoSchedule,example.com/other:NoExecute", taints: []corev1.Taint{gpu, other}},
		"one that is a preference":          {annotation: "nvidia.com/gpu=true:PreferNoSchedule"},
		"one that Karpenter knows":          {annotation: "karpenter.sh/unregistered:NoExecute,node.kubernetes.io/not-ready:NoSchedule"},
		"an empty annotation":               {annotation: " "},
		"an annotation without effect":      {annotation: "nvidia.com/gpu=true", wantInvalid: `annotation capacity.cluster-autoscaler.kubernetes.io/taints: expected taints in the form key=value:effect,key:effect with the effect NoSchedule, PreferNoSchedule or NoExecute, found "nvidia.com/gpu=true"`},
		"an annotation without a key":       {annotation: "=true:NoSchedule", wantInvalid: "expected taints"},
		"an annotation with a bad value":    {annotation: "a=b c:NoSchedule", wantInvalid: "expected taints"},
		"one that stays":                    {change: machineTaint(gpu, always), want: "add the taint to spec.template.spec.taints of NodePool pool"},
		"one that stays, of the pool":       {change: machineTaint(gpu, always), taints: []corev1.Taint{gpu}},
		"one that stays, but is removed":    {change: machineTaint(gpu, always), startup: []corev1.Taint{gpu}, want: "add the taint to spec.template.spec.taints of NodePool pool"},
		"one at the start":                  {change: machineTaint(gpu, atStart), want: "add the taint to spec.template.spec.taints or startupTaints of NodePool pool"},
		"one at the start, of the pool":     {change: machineTaint(gpu, atStart), taints: []corev1.Taint{gpu}},
		"one at the start that is removed":  {change: machineTaint(gpu, atStart), startup: []corev1.Taint{gpu}},
		"one of Machines and an annotation": {annotation: "example.com/other:NoExecute", change: machineTaint(gpu, always), taints: []corev1.Taint{gpu}, want: "the taint example.com/other:NoExecute"},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"}
			if tc.annotation != "" {
				annotations[taintsAnnotation] = tc.annotation
			}
			existing := machineDeployment("md", annotations)
			if tc.change != nil {
				tc.change(existing)
			}
			c, _ := newWorld(t, listed(m5large()), existing)
			input := template("types")
			input.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
			types, problems, err := c.Types(t.Context(), input)
			if err != nil {
				t.Fatal(err)
			}
			if tc.wantInvalid != "" {
				if len(problems) != 1 || !strings.Contains(problems[0].Message, tc.wantInvalid) {
					t.Errorf("got problems %+v, want %q", problems, tc.wantInvalid)
				}
				return
			}
			got, err := c.InstanceTypesFor(t.Context(), input, Demand{Taints: tc.taints, StartupTaints: tc.startup}, began)
			if err != nil {
				t.Fatal(err)
			}
			available := map[string]int{}
			for name, instanceType := range byName(got) {
				available[name] = len(instanceType.Offerings.Available())
				if len(instanceType.Offerings) == 0 {
					t.Errorf("type %s has lost its offerings, so that Karpenter replaces its Nodes", name)
				}
			}
			want := map[string]int{"m5.large": 3, "md": 1}
			if tc.want != "" {
				want["md"] = 0
			}
			if diff := cmp.Diff(want, available); diff != "" {
				t.Errorf("available offerings (-want +got):\n%s", diff)
			}
			unusable := Untolerated(types, []karpv1.NodePool{poolWith("pool", tc.taints, tc.startup)})
			if (len(unusable) > 0) != (tc.want != "") || len(unusable) > 0 && (!strings.Contains(unusable[0].Message, tc.want) || unusable[0].Reason != v1alpha1.ReasonTaintsNotInNodePool) {
				t.Errorf("got problems %+v, want %q", unusable, tc.want)
			}
			if all, err := c.InstanceTypes(t.Context(), input, began); err != nil || len(byName(all)["md"].Offerings.Available()) != 1 {
				t.Errorf("the answer for one NodePool changes that for others: %v", err)
			}
		})
	}
}

// A taint is only reported if no NodePool of the template has it.
func TestUntolerated(t *testing.T) {
	gpu, other := taint("gpu", "", corev1.TaintEffectNoSchedule), taint("other", "", corev1.TaintEffectNoSchedule)
	types := []Type{{Name: "large", Offerings: []Offering{{CapacityType: "spot", Taints: []Taint{{Taint: gpu}, {Taint: other}}}, {CapacityType: "on-demand"}}}}
	for name, tc := range map[string]struct {
		pools []karpv1.NodePool
		want  []string // parts of the problems
	}{
		"no NodePool":           {},
		"one NodePool":          {pools: []karpv1.NodePool{poolWith("a", nil, nil)}, want: []string{"gpu:NoSchedule", "other:NoSchedule"}},
		"one of two has it":     {pools: []karpv1.NodePool{poolWith("a", nil, nil), poolWith("b", []corev1.Taint{gpu}, []corev1.Taint{other})}},
		"the closest is named":  {pools: []karpv1.NodePool{poolWith("a", nil, nil), poolWith("b", []corev1.Taint{gpu}, nil)}, want: []string{"of NodePool b"}},
		"none has both of them": {pools: []karpv1.NodePool{poolWith("a", []corev1.Taint{other}, nil), poolWith("b", []corev1.Taint{gpu}, nil)}, want: []string{"gpu:NoSchedule, which no NodePool"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Untolerated(types, tc.pools)
			if len(got) != len(tc.want) {
				t.Fatalf("got %+v, want %q", got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i].Message, want) {
					t.Errorf("got %q, want %q", got[i].Message, want)
				}
			}
		})
	}
}
