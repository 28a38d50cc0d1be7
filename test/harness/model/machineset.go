// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
	"time"
)

// Machine is what a MachineSet reads from one of its Machines.
type Machine struct {
	Name string
	// Created is its creation timestamp. API servers cut it to whole seconds.
	Created time.Time
	// Deleting is whether it has a deletion timestamp.
	Deleting bool
	// DeleteAnnotation is whether it has the annotation cluster.x-k8s.io/delete-machine.
	DeleteAnnotation bool
	// Healthy is whether it has a Node, and that neither of its conditions NodeHealthy and
	// HealthCheckSucceeded is False.
	Healthy bool
}

// MachineSet returns how many Machines a MachineSet creates, and which it deletes, in that order
// (core/reconcilers/machineset: syncReplicas and machineset_deletion_order.go).
//
// A blocked one, whose preflight checks fail, creates none and reports that in its condition
// ScalingUp. It still deletes Machines (machineset_preflight.go, runPreflightChecks).
//
// Machines that are being deleted count as Machines, and come first in the order of deletion: each
// of them counts as one of the surplus Machines.
//
// Healthy Machines of the same second are deleted in the order in which they are passed. Cluster
// API has no order among them: its comparison reads the clock for each of the two, so the first
// always seems to be the younger one. Only when Machines are some months old are the numbers equal,
// and the name decides; all that are older than a year are equal in this way, whenever they were
// created. The model does not cover Machines with a creation timestamp in the future.
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

// deletionOrder sorts Machines so that those that are deleted first come first.
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

// Cluster API's priorities. Those of healthy Machines are below 50, by e to the power of -age, so a
// healthy one is never deleted before an unhealthy one.
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
