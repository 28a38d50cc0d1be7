// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

const caughtUpWithin = 20 * time.Second

// Record follows the history until the returned function is called, which returns the result.
func (s *Scene) Record(ctx context.Context) (*history.Recorder, func() error, error) {
	etcd, err := s.Component(stack.Etcd)
	if err != nil {
		return nil, nil, err
	}
	log, err := os.Create(filepath.Join(s.LogDir(), "history.log"))
	if err != nil {
		return nil, nil, err
	}
	recorder := history.NewRecorder(history.Rules{Failures: []string{failureReason}, LaunchTimeout: s.LaunchTimeout}, log)
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- history.Follow(ctx, fmt.Sprintf("http://127.0.0.1:%d", etcd.Port), recorder.Observe)
	}()
	return recorder, func() error {
		stop()
		return errors.Join(<-ended, log.Close())
	}, nil
}

// Verdict is what is wrong.
type Verdict []history.Violation

// Count returns how many violations of a rule there are.
func (v Verdict) Count(rule history.Rule) int {
	count := 0
	for _, violation := range v {
		if violation.Rule == rule {
			count++
		}
	}
	return count
}

// clusterAPIAgent is the user agent of Cluster API's core controllers.
const clusterAPIAgent = "cluster-api-core"

// Violations returns the violations that a recorder has seen, the earliest first, and the losses: what Cluster API
// deleted in the place of a Machine that it had created twice. If the audit log does not show that it was Cluster API,
// it is a violation.
func (s *Scene) Violations(recorder *history.Recorder) (violations Verdict, losses []history.Violation, err error) {
	seen, err := recorder.Violations()
	found := recorder.Losses()
	if err != nil || len(found) == 0 {
		return seen, nil, err
	}
	requests, _, err := s.machineLog().Since(0)
	if err != nil {
		return seen, nil, err
	}
	violations, losses = split(found, requests)
	violations = append(violations, seen...)
	slices.SortStableFunc(violations, func(a, b history.Violation) int { return cmp.Compare(a.Revision, b.Revision) })
	return violations, losses, nil
}

// TellLosses prints losses, which do not make a run fail.
func (s *Scene) TellLosses(losses []history.Violation) {
	for _, loss := range losses {
		s.Tell("a known race of Cluster API: %s", loss)
	}
}

// split separates the losses that others than Cluster API caused, which are violations.
func split(found []history.Violation, requests []audit.Entry) (violations, losses []history.Violation) {
	return lo.FilterReject(found, func(loss history.Violation, _ int) bool {
		request := audit.Deleter("machines", loss.Machine, requests)
		return request == nil || !request.By(clusterAPIAgent)
	})
}

// Describe describes each violation, and who deleted the affected Machine.
func (s *Scene) Describe(v Verdict) (string, error) {
	requests, _, err := s.machineLog().Since(0)
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("%d violations of invariants", len(v))}
	for _, violation := range v {
		line := "  " + violation.String()
		if violation.Rule == history.WrongDelete {
			if request := audit.Deleter("machines", violation.Machine, requests); request != nil {
				line += "; " + request.String()
			} else {
				line += "; the audit log does not show by whom"
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

// Leftovers returns what must not exist when everything has settled, of both the history and the Nodes that exist now.
func (s *Scene) Leftovers(ctx context.Context, recorder *history.Recorder) (Verdict, error) {
	nodes, err := s.nodesWithoutMachine(ctx)
	return slices.Concat(recorder.End(), nodes), err
}

// nodesWithoutMachine returns the Nodes without a Machine.
func (s *Scene) nodesWithoutMachine(ctx context.Context) ([]history.Violation, error) {
	nodes, machines := &corev1.NodeList{}, &clusterv1.MachineList{}
	if err := errors.Join(s.Workload.List(ctx, nodes, stack.Workers), s.Management.List(ctx, machines)); err != nil {
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

// CaughtUp waits until the history ends with the objects of the API server, so that nothing is
// missing.
func (s *Scene) CaughtUp(ctx context.Context, recorder *history.Recorder) error {
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
