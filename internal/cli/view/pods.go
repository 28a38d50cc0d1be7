// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
