// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// claimsNotServed is the rule for Pods to whose ResourceClaims no instance type of their NodePool has the devices.
var claimsNotServed = Rule{
	Name: "ClaimsNotServed",
	Seen: "a Pod with ResourceClaims is pending, and NodePools would accept it without them",
	Do:   "Compare the selectors of the claims and of their DeviceClasses with `devices` of the catalog and `status.observedDevices` of the template. If Karpenter ignores ResourceClaims, set `settings.ignoreDRARequests` to false",
	See:  "docs/guides/devices.md#a-pod-that-gets-no-node",
	of:   isUnserved,
	find: func(s *subject) (string, error) {
		if len(s.pod.Spec.ResourceClaims) == 0 || s.template == nil {
			return "", nil
		}
		// Events of kube-scheduler have the same reason, and other words.
		event, found := lo.Find(s.view.Events(s.ctx, s.pod), func(e corev1.Event) bool {
			return strings.Contains(strings.ToLower(e.Message), "dynamic resource")
		})
		if !found {
			return "", nil
		}
		instanceTypes, err := s.view.InstanceTypes(s.ctx, s.template, s.pool)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("Pod %s: %s. The instance types of NodePool %s have %s", s.pod.Name, strings.TrimSuffix(view.OneLine(event.Message), "."), s.pool.Name, devicesOf(instanceTypes)), nil
	},
}

// devicesOf returns which devices instance types have, as a text. It names a few types, and counts the others.
func devicesOf(instanceTypes []*cloudprovider.InstanceType) string {
	parts := lo.FilterMap(instanceTypes, func(it *cloudprovider.InstanceType, _ int) (string, bool) {
		devices := catalog.CountDevices(it.DynamicResources)
		return it.Name + ": " + devices, devices != ""
	})
	if len(parts) == 0 {
		return "no devices"
	}
	if left := len(parts) - most; left > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", left))
	}
	return "devices (" + strings.Join(parts, "; ") + ")"
}
