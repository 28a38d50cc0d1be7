// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// +kubebuilder:rbac:roleName=workload-role,groups=storage.k8s.io,resources=csinodes,verbs=list;watch

// volumes returns how many volumes of each CSI driver can be attached to a Node. The kubelet creates the CSINode with its first
// driver.
func (r *Reconciler) volumes(ctx context.Context, node string) (map[string]int32, error) {
	csiNode := &storagev1.CSINode{}
	if err := r.clusters.Workload.GetClient().Get(ctx, types.NamespacedName{Name: node}, csiNode, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("getting CSINode %s: %w", node, err)
	}
	return catalog.VolumeLimits(csiNode), nil
}

// asQuantities returns limits as quantities, so that they are learned as those of resources are.
func asQuantities(limits map[string]int32) corev1.ResourceList {
	return lo.MapEntries(limits, func(driver string, limit int32) (corev1.ResourceName, resource.Quantity) {
		return corev1.ResourceName(driver), *resource.NewQuantity(int64(limit), resource.DecimalSI)
	})
}

// typicalVolumes returns how many volumes can be attached to most Nodes of a type. A driver that no Node reports any more
// is left out, as is one that reports 0.
func typicalVolumes(known v1alpha1.ObservedCapacity, reports []report) map[string]int32 {
	lists := lo.Map(reports, func(r report, _ int) corev1.ResourceList { return asQuantities(r.volumes) })
	drivers := lo.Uniq(lo.FlatMap(lists, func(list corev1.ResourceList, _ int) []corev1.ResourceName { return lo.Keys(list) }))
	var limits map[string]int32
	for driver, limit := range typical(drivers, asQuantities(known.VolumeAttachmentLimits), lists) {
		if limits == nil {
			limits = map[string]int32{}
		}
		limits[string(driver)] = int32(limit.Value())
	}
	return limits
}

// volumesDiffer reports whether Nodes report another limit than the declared one. Unlike resources, a driver that is not
// declared counts, because Karpenter then plans any number of its volumes.
func volumesDiffer(observed map[string]int32, declared map[string]int) bool {
	return lo.SomeBy(lo.Entries(observed), func(limit lo.Entry[string, int32]) bool {
		expected, is := declared[limit.Key]
		return !is || expected != int(limit.Value)
	})
}

// wrongVolumes returns a text for each declared limit that Nodes do not have.
func wrongVolumes(o v1alpha1.ObservedCapacity, declared map[string]int) []string {
	return lo.FilterMap(slices.Sorted(maps.Keys(o.VolumeAttachmentLimits)), func(driver string, _ int) (string, bool) {
		expected, is := declared[driver]
		found := int(o.VolumeAttachmentLimits[driver])
		return fmt.Sprintf("volumes of %s of %s: declared %d, observed %d", driver, o.InstanceType, expected, found), is && expected != found
	})
}
