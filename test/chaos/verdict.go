// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/audit"
	"github.com/karpenter-capi/karpenter-capi/test/history"
)

// verdict is the result of a trial.
type verdict struct {
	violations []history.Violation
	requests   []audit.Entry
}

// verdict checks the history and the objects that are left now.
func (s *scene) verdict(ctx context.Context, recorder *history.Recorder) (*verdict, error) {
	v := &verdict{}
	var err error
	if v.violations, err = recorder.Violations(); err != nil {
		return nil, err
	}
	if s.ended {
		nodes, err := s.nodesWithoutMachine(ctx)
		if err != nil {
			return nil, err
		}
		v.violations = slices.Concat(v.violations, recorder.End(), nodes)
	}
	v.requests, _, err = s.auditLog().Since(0)
	return v, err
}

func (v *verdict) ok() bool { return len(v.violations) == 0 }

func (v *verdict) count(rule history.Rule) int {
	count := 0
	for _, violation := range v.violations {
		if violation.Rule == rule {
			count++
		}
	}
	return count
}

// counts returns the last line.
func (v *verdict) counts(kills, claims int) string {
	return fmt.Sprintf("kills=%d claims=%d machines_leaked=%d double_links=%d wrong_deletes=%d",
		kills, claims, v.count(history.Leak), v.count(history.DoubleLink), v.count(history.WrongDelete))
}

// String describes each violation, and who deleted the affected Machine.
func (v *verdict) String() string {
	lines := []string{fmt.Sprintf("%d violations of invariants", len(v.violations))}
	for _, violation := range v.violations {
		line := "  " + violation.String()
		if violation.Rule == history.WrongDelete {
			if request := audit.Deleter("machines", violation.Machine, v.requests); request != nil {
				line += "; " + request.String()
			} else {
				line += "; the audit log does not show by whom"
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// nodesWithoutMachine returns the Nodes without a Machine.
func (s *scene) nodesWithoutMachine(ctx context.Context) ([]history.Violation, error) {
	nodes, machines := &corev1.NodeList{}, &clusterv1.MachineList{}
	if err := errors.Join(s.Workload.List(ctx, nodes), s.Management.List(ctx, machines)); err != nil {
		return nil, err
	}
	known := sets.New[string]()
	for i := range machines.Items {
		known.Insert(machines.Items[i].Spec.ProviderID)
	}
	var found []history.Violation
	for i := range nodes.Items {
		if node := &nodes.Items[i]; !known.Has(node.Spec.ProviderID) {
			found = append(found, history.Violation{Rule: history.Leak, Text: fmt.Sprintf("at the end Node %s (%s) has no Machine", node.Name, node.Spec.ProviderID)})
		}
	}
	return found, nil
}

// caughtUp waits until the history ends with the objects of the API server, so that nothing is
// missing.
func (s *scene) caughtUp(ctx context.Context, recorder *history.Recorder) error {
	return s.Await(ctx, caughtUpWithin, "the history to end with the existing objects", func(ctx context.Context) (bool, string, error) {
		claims, machines := &karpv1.NodeClaimList{}, &clusterv1.MachineList{}
		if err := errors.Join(s.Workload.List(ctx, claims), s.Management.List(ctx, machines)); err != nil {
			return false, err.Error(), nil
		}
		for kind, there := range map[history.Kind][]types.UID{
			history.NodeClaim: uids(claims.Items), history.Machine: uids(machines.Items),
		} {
			if known := recorder.UIDs(kind); !slices.Equal(known, there) {
				return false, fmt.Sprintf("%d objects of kind %s in the history, %d at the API server, or different ones", len(known), kind, len(there)), nil
			}
		}
		return true, "", nil
	})
}

// uids returns the UIDs of objects, sorted.
func uids[T any, P interface {
	*T
	client.Object
}](items []T) []types.UID {
	found := make([]types.UID, 0, len(items))
	for i := range items {
		found = append(found, P(&items[i]).GetUID())
	}
	slices.Sort(found)
	return found
}
