// SPDX-License-Identifier: Apache-2.0

package podevents

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLastEvent(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)) }
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, seconds int) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: at(seconds)}
	}
	bound := condition(corev1.PodScheduled, corev1.ConditionTrue, 1)
	ended := func(seconds ...int) (containers []corev1.ContainerStatus) {
		for _, second := range seconds {
			containers = append(containers, corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(second)}}})
		}
		return containers
	}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want time.Time
	}{
		"that waits": {pod: corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{condition(corev1.PodScheduled, corev1.ConditionFalse, 1)}}}},
		"that is bound": {
			pod:  corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{bound}}},
			want: noon.Add(time.Second),
		},
		"that is ready, which does not count": {
			pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
				Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{bound, condition(corev1.PodReady, corev1.ConditionTrue, 2)},
			}},
			want: noon.Add(time.Second),
		},
		"that has ended": {
			pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
				Phase: corev1.PodSucceeded, Conditions: []corev1.PodCondition{bound, condition(corev1.PodReady, corev1.ConditionFalse, 3)},
			}},
			want: noon.Add(3 * time.Second),
		},
		// The kubelet changes Ready only if its status changes, and such a Pod was never ready.
		"that has ended without ever being ready": {
			pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
				Phase: corev1.PodSucceeded, Conditions: []corev1.PodCondition{bound, condition(corev1.PodReady, corev1.ConditionFalse, 1)},
				InitContainerStatuses: ended(2), ContainerStatuses: ended(7200, 30),
			}},
			want: noon.Add(2 * time.Hour),
		},
		"that ends during its initialization": {
			pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
				Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{bound}, InitContainerStatuses: ended(3600),
			}},
			want: noon.Add(time.Hour),
		},
		"whose image never came, until its deadline": {
			pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
				Phase:             corev1.PodFailed,
				Conditions:        []corev1.PodCondition{bound, condition(corev1.PodReady, corev1.ConditionFalse, 1), condition(corev1.PodReadyToStartContainers, corev1.ConditionFalse, 3600)},
				ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}},
			}},
			want: noon.Add(time.Hour),
		},
		"whose Node was lost": {
			pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
				Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{bound, condition(corev1.DisruptionTarget, corev1.ConditionTrue, 3600)},
			}},
			want: noon.Add(time.Hour),
		},
		"with a container that runs again, which does not count": {
			pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
				Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{bound}, InitContainerStatuses: ended(3600),
			}},
			want: noon.Add(time.Second),
		},
		"that terminates": {
			pod: corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(at(34)), DeletionGracePeriodSeconds: new(int64(30))},
				Spec:       corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{bound}},
			},
			want: noon.Add(4 * time.Second),
		},
	} {
		t.Run("a Pod "+name, func(t *testing.T) {
			if got := lastEvent(&tc.pod); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
