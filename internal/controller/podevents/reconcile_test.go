// SPDX-License-Identifier: Apache-2.0

package podevents

import (
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

type provider struct{ cloudprovider.CloudProvider }

func (provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.KarpenterMachineTemplate{}}
}

// A Job's Pod is recorded when it comes to its Node and when it ends, also if it was never
// ready. What is recorded is not recorded again after a restart.
func TestAJobIsRecorded(t *testing.T) {
	claim := fixture.Claim(time.Hour)
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: "KarpenterMachineTemplate", Name: "t"}
	claim.Status.ProviderID = "sim:///1"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: "sim:///1"}}
	at := func(after time.Duration) metav1.Time { return metav1.NewTime(fixture.Noon.Add(after)) }
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"}, Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(0)},
		}},
	}
	running, ended := pod.DeepCopy(), pod.DeepCopy()
	running.Status.Phase, ended.Status.Phase = corev1.PodRunning, corev1.PodSucceeded
	running.Status.Conditions = append(running.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(time.Second)})
	ended.Status.Conditions = running.Status.Conditions
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(time.Hour)}}}}

	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim, node).WithStatusSubresource(claim).
		WithIndex(claim, "status.providerID", func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).Build()
	clock := clocktesting.NewFakeClock(fixture.Noon)
	controller := NewController(clock, workload, provider{})
	for _, step := range []struct {
		name  string
		pod   *corev1.Pod
		after time.Duration
		want  time.Duration
	}{
		{"it is bound", pod, time.Second, time.Second},
		{"it runs", running, 2 * time.Second, time.Second},
		{"it ends", ended, time.Hour + time.Second, time.Hour + time.Second},
		{"the operator restarts", ended, 2 * time.Hour, time.Hour + time.Second},
	} {
		clock.SetTime(fixture.Noon.Add(step.after))
		if _, err := controller.Reconcile(t.Context(), step.pod); err != nil {
			t.Fatal(err)
		}
		if err := workload.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		if got, want := claim.Status.LastPodEventTime, at(step.want); !got.Equal(&want) {
			t.Errorf("%s: the last Pod event is %s, want %s", step.name, got, want)
		}
	}
	if changes.Update(event.UpdateEvent{ObjectOld: pod, ObjectNew: running}) {
		t.Error("a Pod that starts to run is reconciled")
	}
	if !changes.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: ended}) {
		t.Error("a Pod that ends is not reconciled")
	}
}
