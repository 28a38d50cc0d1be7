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

// Adopted reports whether this operator uses a resource that it did not generate.
func Adopted(resource metav1.Object) bool {
	_, adopted := resource.GetAnnotations()[v1alpha1.AdoptedAnnotation]
	return adopted
}

// Adopt returns a MachineDeployment as the resource of an offering of a template. Its
// present replicas become unmanaged replicas, and its present Machines unmanaged Machines:
// the annotation has the creation time of the youngest, by the clock of the API server,
// like that of all later Machines. Its Machine template does not change, so that nothing is
// rolled out. Labels and annotations that Machines of claims need are written with the link.
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

// EndAdoption returns an adopted resource without the labels and annotations of this operator.
func EndAdoption(resource *Resource) *Resource {
	disowned := resource.DeepCopy()
	for _, key := range []string{v1alpha1.TemplateLabel, v1alpha1.InstanceTypeLabel, v1alpha1.ZoneLabel, v1alpha1.CapacityTypeLabel} {
		delete(disowned.GetLabels(), key)
	}
	for _, key := range []string{v1alpha1.AdoptedAnnotation, v1alpha1.UnmanagedReplicasAnnotation, v1alpha1.EmptySinceAnnotation, v1alpha1.ReplicasLoweredAtAnnotation} {
		delete(disowned.GetAnnotations(), key)
	}
	return disowned
}

// Adoption returns the creation time of the youngest Machine that a resource had when it was
// adopted, zero if it was not adopted, and the number of unmanaged replicas. If a user has
// spoiled the annotations, all its Machines and replicas count as unmanaged, so that none is
// deleted by mistake.
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
