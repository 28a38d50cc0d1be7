// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"math"
	"strconv"
	"time"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// Adopted tells whether a resource was there before this operator used it.
func Adopted(resource *clusterv1.MachineDeployment) bool {
	_, adopted := resource.Annotations[v1alpha1.AdoptedAnnotation]
	return adopted
}

// Adopt returns a MachineDeployment as one that makes Machines for an offering of a
// template from now on. The Machines that it has, or is about to have, stay its own:
// replicas are what they were, and the time is that of the youngest, by the API
// server's clock as that of all Machines to come. Its template is not touched, so that
// nothing is rolled out and no Machine that it has is changed; what Machines of claims
// need is written on each with its link.
func Adopt(resource *clusterv1.MachineDeployment, machines []clusterv1.Machine, template string, offering catalog.Key) *clusterv1.MachineDeployment {
	youngest := resource.CreationTimestamp.Time
	for i := range machines {
		youngest = latest(youngest, machines[i].CreationTimestamp.Time)
	}
	adopted := resource.DeepCopy()
	adopted.Labels = lo.Assign(adopted.Labels, labelsOf(template, offering))
	adopted.Annotations = lo.Assign(adopted.Annotations, map[string]string{
		v1alpha1.AdoptedAnnotation:     timestamp(youngest),
		v1alpha1.OwnReplicasAnnotation: strconv.Itoa(int(lo.FromPtr(resource.Spec.Replicas))),
	})
	return adopted
}

// Disown returns an adopted MachineDeployment as it was before.
func Disown(resource *clusterv1.MachineDeployment) *clusterv1.MachineDeployment {
	disowned := resource.DeepCopy()
	for _, key := range []string{v1alpha1.TemplateLabel, v1alpha1.InstanceTypeLabel, v1alpha1.ZoneLabel, v1alpha1.CapacityTypeLabel} {
		delete(disowned.Labels, key)
	}
	for _, key := range []string{v1alpha1.AdoptedAnnotation, v1alpha1.OwnReplicasAnnotation, v1alpha1.EmptySinceAnnotation} {
		delete(disowned.Annotations, key)
	}
	return disowned
}

// Adoption returns when the youngest Machine was made that a resource had when it was
// adopted, zero if it was not, and how many Machines it has of its own. Should somebody
// have spoiled the annotations, all its Machines are older and there are no fewer than
// now: nothing is removed by mistake.
func Adoption(resource *clusterv1.MachineDeployment) (time.Time, int32) {
	if !Adopted(resource) {
		return time.Time{}, 0
	}
	at, err := time.Parse(time.RFC3339, resource.Annotations[v1alpha1.AdoptedAnnotation])
	if err != nil {
		return time.Unix(math.MaxInt32, 0), lo.FromPtr(resource.Spec.Replicas)
	}
	own, err := strconv.ParseInt(resource.Annotations[v1alpha1.OwnReplicasAnnotation], 10, 32)
	if err != nil || own < 0 {
		return at, lo.FromPtr(resource.Spec.Replicas)
	}
	return at, int32(own)
}

// RollingOut tells whether Cluster API is replacing the Machines of an adopted
// resource, which its owner has changed: then it has Machines in several MachineSets,
// and which of them goes when replicas are lowered is not for us to say. What is
// generated is never rolled out.
func RollingOut(resource *clusterv1.MachineDeployment, sets []clusterv1.MachineSet) bool {
	return resource != nil && Adopted(resource) && lo.CountBy(sets, func(set clusterv1.MachineSet) bool {
		return lo.FromPtr(set.Spec.Replicas) > 0 || lo.FromPtr(set.Status.Replicas) > 0
	}) > 1
}

// labelsOf returns the labels that tell what a resource and its Machines are for.
func labelsOf(template string, offering catalog.Key) map[string]string {
	labels := map[string]string{
		v1alpha1.TemplateLabel:     template,
		v1alpha1.InstanceTypeLabel: offering.InstanceType,
		v1alpha1.CapacityTypeLabel: offering.CapacityType,
	}
	if offering.Zone != "" {
		labels[v1alpha1.ZoneLabel] = offering.Zone
	}
	return labels
}
