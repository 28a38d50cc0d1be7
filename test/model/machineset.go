// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
	"time"
)

// Machine is what a MachineSet looks at in one of its Machines.
type Machine struct {
	Name string
	// Created is its creation timestamp. API servers cut it to whole seconds.
	Created time.Time
	// Deleting tells that it has a deletion timestamp.
	Deleting bool
	// DeleteAnnotation tells that it has the annotation cluster.x-k8s.io/delete-machine.
	DeleteAnnotation bool
	// Healthy tells that it has a Node, and that neither of its conditions NodeHealthy
	// and HealthCheckSucceeded is False.
	Healthy bool
}

// MachineSet returns how many Machines a MachineSet makes, and which it deletes, in
// that order (core/reconcilers/machineset: syncReplicas and
// machineset_deletion_order.go).
//
// A blocked one, whose preflight checks fail, creates none, reports that in its condition
// ScalingUp, and deletes Machines all the same (machineset_preflight.go, runPreflightChecks).
//
// Deleting Machines count as Machines, and are the first of those to go: each of
// them uses up one of the places that there are too many.
//
// Healthy Machines of the same second go in the order in which they are given here.
// Cluster API has no order among them: its comparison reads the clock for each of
// the two, so the first always seems the younger one. Only when Machines are some
// months old do the numbers get equal, and the name decides; all that are older
// than a year are equal in this way, whenever they were made. Nor does the model
// have Machines that were created in the future.
func MachineSet(replicas int32, blocked bool, machines []Machine) (create int32, remove []string) {
	tooMany := len(machines) - int(replicas)
	if tooMany <= 0 {
		if blocked {
			return 0, nil
		}
		return int32(-tooMany), nil
	}
	order := slices.Clone(machines)
	slices.SortStableFunc(order, deletionOrder)
	for _, machine := range order[:tooMany] {
		if !machine.Deleting {
			remove = append(remove, machine.Name)
		}
	}
	return 0, remove
}

// deletionOrder has those first that go first.
func deletionOrder(a, b Machine) int {
	switch pa, pb := priority(a), priority(b); {
	case pa != pb:
		return pb - pa
	case pa == healthy:
		return b.Created.Truncate(time.Second).Compare(a.Created.Truncate(time.Second))
	default:
		return strings.Compare(a.Name, b.Name)
	}
}

// Cluster API's priorities. Those of healthy Machines are below 50, by e to the power
// of -age, so a healthy one never goes before an unhealthy one.
const (
	deleting  = 100
	annotated = 80
	unhealthy = 50
	healthy   = 0
)

func priority(m Machine) int {
	switch {
	case m.Deleting:
		return deleting
	case m.DeleteAnnotation:
		return annotated
	case !m.Healthy:
		return unhealthy
	default:
		return healthy
	}
}
