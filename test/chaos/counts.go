// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/stack/kinds"
)

// counts is how many objects exist.
type counts struct {
	pods, running       int
	claims, initialized int
	replicas, machines  int
	instances, nodes    int
}

// String implements fmt.Stringer.
func (c counts) String() string {
	return fmt.Sprintf("pods %d/%d running  claims %d/%d initialized  replicas %d  machines %d  instances %d  nodes %d",
		c.running, c.pods, c.initialized, c.claims, c.replicas, c.machines, c.instances, c.nodes)
}

// settled returns the counts if each Pod has its claim, Machine, instance and Node, and nothing else exists.
func settled(pods int) counts {
	return counts{pods: pods, running: pods, claims: pods, initialized: pods, replicas: pods, machines: pods, instances: pods, nodes: pods}
}

// count lists the objects. An object that is being deleted exists, but does not count as running or initialized.
func (s *scene) count(ctx context.Context) (counts, error) {
	pods, claims, nodes := &corev1.PodList{}, &karpv1.NodeClaimList{}, &corev1.NodeList{}
	machines, instances := &clusterv1.MachineList{}, &infrav1.SimulatedMachineList{}
	resources, err := kinds.Resources(ctx, s.Management)
	err = errors.Join(
		err,
		s.Workload.List(ctx, pods, client.MatchingLabels(podLabels)),
		s.Workload.List(ctx, claims),
		s.Workload.List(ctx, nodes),
		s.Management.List(ctx, machines),
		s.Management.List(ctx, instances),
	)
	return counts{
		pods: len(pods.Items),
		running: lo.CountBy(pods.Items, func(pod corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
		}),
		claims: len(claims.Items),
		initialized: lo.CountBy(claims.Items, func(claim karpv1.NodeClaim) bool {
			return claim.StatusConditions().IsTrue(karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized) && claim.DeletionTimestamp.IsZero()
		}),
		replicas: lo.SumBy(resources, func(r kinds.Resource) int { return r.Replicas }),
		machines: len(machines.Items), instances: len(instances.Items), nodes: len(nodes.Items),
	}, err
}

// settle waits until everything has settled with the given number of Pods.
func (s *scene) settle(ctx context.Context, pods int, within time.Duration) error {
	var counted time.Time
	return s.Await(ctx, within, fmt.Sprintf("%d pods with a claim, Machine, instance and Node each, and nothing else", pods),
		func(ctx context.Context) (bool, string, error) {
			// Listing all objects is expensive for the API server, which is already busy.
			if time.Since(counted) < countEvery {
				return false, "", nil
			}
			defer func() { counted = time.Now() }()
			now, err := s.count(ctx)
			if err != nil {
				return false, err.Error(), nil
			}
			s.show(now)
			return now == settled(pods), now.String(), nil
		})
}

// shown is the last line of progress.
type shown struct {
	text string
	at   time.Time
}

// Everything is counted at most once in countEvery. A line of progress is written this long after the last one, if
// something has changed or if nothing has.
const (
	countEvery     = 2 * time.Second
	changedAfter   = 5 * time.Second
	unchangedAfter = 30 * time.Second
)

// show prints the progress from time to time.
func (s *scene) show(now counts) {
	text := now.String()
	if since := time.Since(s.shown.at); since > unchangedAfter || (text != s.shown.text && since > changedAfter) {
		s.tell("%s", text)
		s.shown = shown{text, time.Now()}
	}
}

// tell prints a line with the time since the beginning.
func (s *scene) tell(format string, args ...any) {
	fmt.Printf("    %4.0fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// step begins a part of the trial.
func (s *scene) step(format string, args ...any) {
	fmt.Printf("\n==> %s\n", fmt.Sprintf(format, args...))
}
