// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// Pod reads a Pod from the API server: a cluster can have very many.
func (v *View) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, v.clusters.Workload.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
}

// Pods returns all Pods by the name of their Node. Those without a Node are not among them.
func (v *View) Pods(ctx context.Context) (map[string][]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := fill(ctx, v.clusters.Workload, list); err != nil {
		return nil, fmt.Errorf("workload cluster: %w", err)
	}
	byNode := lo.GroupBy(list.Items, func(pod corev1.Pod) string { return pod.Spec.NodeName })
	delete(byNode, "")
	return byNode, nil
}

// Daemons returns a Pod of each DaemonSet whose Pods run on the Nodes with some requirements and taints, without the
// requirements that the DaemonSet's controller adds.
func (v *View) Daemons(ctx context.Context, requirements scheduling.Requirements, taints []corev1.Taint) ([]corev1.Pod, error) {
	list := &appsv1.DaemonSetList{}
	if err := fill(ctx, v.clusters.Workload, list); err != nil {
		return nil, fmt.Errorf("workload cluster: %w", err)
	}
	return lo.FilterMap(list.Items, func(set appsv1.DaemonSet, _ int) (corev1.Pod, bool) {
		pod := corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
		return pod, scheduling.Taints(taints).ToleratesPod(&pod) == nil &&
			requirements.IsCompatible(scheduling.NewStrictPodRequirements(&pod), scheduling.AllowUndefinedWellKnownLabels)
	}), nil
}

// Events returns the events of an object of the workload cluster, the latest first. It returns none if the user may not
// list them: they only explain.
func (v *View) Events(ctx context.Context, object metav1.Object) []corev1.Event {
	list := &corev1.EventList{}
	if err := v.clusters.Workload.GetAPIReader().List(ctx, list, client.MatchingFields{"involvedObject.uid": string(object.GetUID())}); err != nil {
		return nil
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return lastSeen(b).Compare(lastSeen(a).Time) })
	return list.Items
}

// lastSeen returns when an event was last seen, whichever client wrote it.
func lastSeen(event corev1.Event) metav1.Time {
	if event.Series != nil {
		return metav1.Time{Time: event.Series.LastObservedTime.Time}
	}
	if !event.LastTimestamp.IsZero() {
		return event.LastTimestamp
	}
	return metav1.Time{Time: event.EventTime.Time}
}

// LeaseName is the name of the operator's lease, which Karpenter's flag --leader-election-name sets.
const LeaseName = "karpenter-leader-election"

// Lease is the operator's lease.
type Lease struct {
	coordinationv1.Lease
	// InWorkload reports whether it is in the workload cluster, so that the operator runs there.
	InWorkload bool
}

// Lease returns the operator's lease that was renewed last, in either cluster; nil if there is none, or the user may not list
// leases.
func (v *View) Lease(ctx context.Context) *Lease {
	var found []Lease
	for _, in := range []cluster.Cluster{v.clusters.Workload, v.clusters.Management} {
		list := &coordinationv1.LeaseList{}
		if err := in.GetAPIReader().List(ctx, list, client.MatchingFields{"metadata.name": LeaseName}); err == nil {
			found = append(found, lo.Map(list.Items, func(l coordinationv1.Lease, _ int) Lease { return Lease{l, in == v.clusters.Workload} })...)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return lo.ToPtr(lo.MaxBy(found, func(a, b Lease) bool { return lo.FromPtr(a.Spec.RenewTime).After(lo.FromPtr(b.Spec.RenewTime).Time) }))
}

// staleAfter is longer than the operator's lease lasts, and than another one needs to take it (package operator).
const staleAfter = 30 * time.Second

// Stopped returns why no operator runs; empty if one does, or if that is not known.
func (v *View) Stopped(ctx context.Context) string {
	lease := v.Lease(ctx)
	switch {
	case lease == nil:
		return ""
	case lease.Spec.RenewTime == nil:
		return fmt.Sprintf("no operator has Lease %s/%s", lease.Namespace, lease.Name)
	case v.Now.Sub(lease.Spec.RenewTime.Time) <= staleAfter:
		return ""
	default:
		return fmt.Sprintf("no operator has renewed Lease %s/%s since %s", lease.Namespace, lease.Name, lease.Spec.RenewTime.UTC().Format("2006-01-02 15:04:05 MST"))
	}
}

// NodePoolLimit returns which limit of a NodePool is reached; empty if none is.
func NodePoolLimit(pool *karpv1.NodePool) string {
	names := lo.Keys(pool.Spec.Limits)
	slices.Sort(names)
	for _, name := range names {
		limit, used := pool.Spec.Limits[name], pool.Status.Resources[name]
		if used.Cmp(limit) >= 0 {
			return fmt.Sprintf("its limit of %s is %s, and its Nodes have %s", name, limit.String(), used.String())
		}
	}
	return ""
}
