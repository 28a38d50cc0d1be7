// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"math"
	"strconv"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// Adopted tells whether a resource was there before this operator used it.
func Adopted(resource metav1.Object) bool {
	_, adopted := resource.GetAnnotations()[v1alpha1.AdoptedAnnotation]
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
		youngest = lo.Latest(youngest, machines[i].CreationTimestamp.Time)
	}
	adopted := resource.DeepCopy()
	adopted.Labels = lo.Assign(adopted.Labels, OfferingLabels(template, offering))
	adopted.Annotations = lo.Assign(adopted.Annotations, map[string]string{
		v1alpha1.AdoptedAnnotation:           timestamp.Format(youngest),
		v1alpha1.UnmanagedReplicasAnnotation: strconv.Itoa(int(lo.FromPtr(resource.Spec.Replicas))),
	})
	return adopted
}

// EndAdoption returns an adopted resource as it was before.
func EndAdoption(resource *Resource) *Resource {
	disowned := resource.DeepCopy()
	labels, annotations := disowned.GetLabels(), disowned.GetAnnotations()
	for _, key := range []string{v1alpha1.TemplateLabel, v1alpha1.InstanceTypeLabel, v1alpha1.ZoneLabel, v1alpha1.CapacityTypeLabel} {
		delete(labels, key)
	}
	for _, key := range []string{v1alpha1.AdoptedAnnotation, v1alpha1.UnmanagedReplicasAnnotation, v1alpha1.EmptySinceAnnotation, v1alpha1.ReplicasLoweredAtAnnotation} {
		delete(annotations, key)
	}
	disowned.SetLabels(labels)
	disowned.SetAnnotations(annotations)
	return disowned
}

// Adoption returns when the youngest Machine was made that a resource had when it was
// adopted, zero if it was not, and how many Machines it has of its own. Should somebody
// have spoiled the annotations, all its Machines are older and there are no fewer than
// now: nothing is removed by mistake.
func Adoption(resource *Resource) (time.Time, int32) {
	if !Adopted(resource) {
		return time.Time{}, 0
	}
	at, known := timestamp.Of(resource, v1alpha1.AdoptedAnnotation)
	if !known {
		return time.Unix(math.MaxInt32, 0), resource.Replicas()
	}
	own, err := strconv.ParseInt(resource.GetAnnotations()[v1alpha1.UnmanagedReplicasAnnotation], 10, 32)
	if err != nil || own < 0 {
		return at, resource.Replicas()
	}
	return at, int32(own)
}
