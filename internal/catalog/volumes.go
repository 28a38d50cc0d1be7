// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/samber/lo"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// volumesOf returns how many volumes of each CSI driver Karpenter plans for a Node of a type. What Nodes report takes
// precedence, because the declared number cannot know what else is attached to a machine.
func volumesOf(t *Type, observed v1alpha1.ObservedCapacity) map[string]int {
	limits := merged(t.VolumeAttachmentLimits, observed.VolumeAttachmentLimits)
	if len(limits) == 0 {
		return nil
	}
	return lo.MapValues(limits, func(limit int32, _ string) int { return int(limit) })
}

// VolumeLimits returns how many volumes of each CSI driver can be attached to a Node. Drivers without a limit are left
// out (Kubernetes: staging/src/k8s.io/api/storage/v1/types.go, VolumeNodeResources).
func VolumeLimits(node *storagev1.CSINode) map[string]int32 {
	limits := map[string]int32{}
	for _, driver := range node.Spec.Drivers {
		if driver.Allocatable != nil && driver.Allocatable.Count != nil {
			limits[driver.Name] = *driver.Allocatable.Count
		}
	}
	return limits
}

// checkVolumes returns an error for limits that no machine can have.
func checkVolumes(limits map[string]int32) error {
	for _, driver := range sets.List(sets.KeySet(limits)) {
		if !isDriver(driver) {
			return fmt.Errorf("volumeAttachmentLimits: expected the name of a CSI driver, such as ebs.csi.aws.com, found %q", driver)
		}
		if limit := limits[driver]; limit < 0 {
			return fmt.Errorf("volumeAttachmentLimits.%s must be 0 or more, found %d", driver, limit)
		}
	}
	return nil
}

// maxDriver is the greatest length of the name of a CSI driver (Kubernetes: pkg/apis/storage/validation,
// ValidateCSIDriverName).
const maxDriver = 63

func isDriver(name string) bool {
	return len(name) <= maxDriver && len(validation.IsDNS1123Subdomain(strings.ToLower(name))) == 0
}

// volumes returns how many volumes of each CSI driver the annotation of cluster-autoscaler sets.
func (a annotations) volumes() (map[string]int32, error) {
	text := a[volumesAnnotation]
	var limits map[string]int32
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		driver, number, _ := strings.Cut(part, "=")
		limit, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
		if driver = strings.TrimSpace(driver); err != nil || limit < 0 || !isDriver(driver) {
			return nil, wrongAnnotation(volumesAnnotation, expectVolumes, text)
		}
		if limits == nil {
			limits = map[string]int32{}
		}
		limits[driver] = int32(limit)
	}
	return limits, nil
}
