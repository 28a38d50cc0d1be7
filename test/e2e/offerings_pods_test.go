// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// offering identifies an offering of offerings.yaml.
type offering struct{ InstanceType, Zone, CapacityType string }

func (o offering) String() string { return o.InstanceType + "/" + o.Zone + "/" + o.CapacityType }

// gpu is the resource name of a GPU.
const gpu corev1.ResourceName = "nvidia.com/gpu"

// need is what one kind of Pod needs, and which offerings of offerings.yaml meet it at the lowest price. No kind can
// run on a Node for another kind, because Karpenter and kube-scheduler would use that Node.
type need struct {
	name           string
	of             func(*corev1.PodSpec)
	cheapest, next offering
}

var needs = []need{
	{
		name: "gpu",
		of: func(spec *corev1.PodSpec) {
			one := resource.MustParse("1")
			spec.Containers[0].Resources.Requests[gpu] = one
			spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: one}
			spec.Tolerations = []corev1.Toleration{{Key: string(gpu), Operator: corev1.TolerationOpExists}}
		},
		cheapest: offering{"gpu-small", "zone-b", karpv1.CapacityTypeSpot},
		next:     offering{"gpu-large", "zone-a", karpv1.CapacityTypeSpot},
	},
	{
		name:     "arm64",
		of:       selecting(corev1.LabelArchStable, karpv1.ArchitectureArm64),
		cheapest: offering{"arm-small", "zone-c", karpv1.CapacityTypeSpot},
		next:     offering{"arm-large", "zone-c", karpv1.CapacityTypeOnDemand},
	},
	{
		name:     "spot",
		of:       selecting(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeSpot, corev1.LabelArchStable, karpv1.ArchitectureAmd64),
		cheapest: offering{"x86-small", "zone-a", karpv1.CapacityTypeSpot},
		next:     offering{"x86-large", "zone-a", karpv1.CapacityTypeSpot},
	},
	{
		name:     "zone",
		of:       selecting(corev1.LabelTopologyZone, "zone-b", corev1.LabelArchStable, karpv1.ArchitectureAmd64),
		cheapest: offering{"x86-small", "zone-b", karpv1.CapacityTypeOnDemand},
		next:     offering{"x86-large", "zone-b", karpv1.CapacityTypeOnDemand},
	},
}

// selecting returns the need of a Node with labels, given as keys and values.
func selecting(labels ...string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.NodeSelector = map[string]string{}
		for i := 0; i < len(labels); i += 2 {
			spec.NodeSelector[labels[i]] = labels[i+1]
		}
	}
}

// pod returns a Pod with the need, and with that of a Node without another such Pod.
func (n need) pod(name string) *corev1.Pod {
	labels := map[string]string{"app": "offerings"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name + "-" + n.name, Labels: labels},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
				}},
			}},
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
			}},
		},
	}
	n.of(&pod.Spec)
	return pod
}

// nodeOf returns the Node that a Pod runs on; nil while it does not run.
func nodeOf(ctx context.Context, s *stack.Stack, pod *corev1.Pod) (*corev1.Node, error) {
	if err := s.Workload.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.Status.Phase != corev1.PodRunning {
		return nil, err
	}
	node := &corev1.Node{}
	return node, s.Workload.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node)
}

// offeringOf returns the offering in the labels of a Node.
func offeringOf(node *corev1.Node) offering {
	return offering{node.Labels[corev1.LabelInstanceTypeStable], node.Labels[corev1.LabelTopologyZone], node.Labels[karpv1.CapacityTypeLabelKey]}
}
