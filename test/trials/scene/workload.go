// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/workload"
)

// Instance types with special behavior.
const (
	failingType = "a"
	slowType    = "slow"
)

// Share is a Deployment with a NodePool of the same name, and its share of all Pods.
type Share struct {
	// Name, and the InstanceTypes and Zones that its NodePool allows, separated by commas.
	Name, InstanceTypes, Zones string
	// parts is how many of 30 parts of the Pods it has.
	parts int
}

// Workloads use all offerings, each the cheapest of those that it may use. Only machines of instance type a can fail:
// an offering with a failed machine is unavailable for minutes, and workloads that allow a also allow another type.
var Workloads = []Share{
	{"a-1", "a, c", "zone-1", 8},
	{"a-2", "a, b", "zone-2", 6},
	{"b-1", "b", "zone-1", 4},
	{"b-2", "b", "zone-2", 3},
	{"c-1", "c", "zone-1", 3},
	{"slow", slowType, "zone-1", 2},
	{"any", "a, b, c", "zone-1, zone-2", 4},
}

// Spread returns how many Pods each workload has, given the total.
func Spread(pods int) []int {
	parts := 0
	for _, w := range Workloads {
		parts += w.parts
	}
	counts := make([]int, len(Workloads))
	done, before := 0, 0
	for i, w := range Workloads {
		// The rest from rounding goes to the next one.
		before += w.parts
		counts[i] = pods*before/parts - done
		done += counts[i]
	}
	return counts
}

var podLabels = map[string]string{"chaos": "true"}

// deployments returns the Deployments, without Pods.
func deployments() []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for _, w := range Workloads {
		all = append(all, workload.Deployment(w.Name, podLabels, map[string]string{karpv1.NodePoolLabelKey: w.Name}))
	}
	return all
}

// Scale sets the total number of Pods.
func (s *Scene) Scale(ctx context.Context, pods int) error {
	for i, count := range Spread(pods) {
		if err := workload.Scale(ctx, s.Workload, Workloads[i].Name, count); err != nil {
			return err
		}
	}
	return nil
}
