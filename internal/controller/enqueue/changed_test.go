// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// passes reports whether a predicate passes an update by which an object changes.
func passes[T client.Object](p predicate.Predicate, object T, change func(T)) bool {
	changed := object.DeepCopyObject().(T)
	change(changed)
	changed.SetResourceVersion("2")
	return p.Update(event.UpdateEvent{ObjectOld: object, ObjectNew: changed})
}

func set(object conditions.Setter, kind string, status metav1.ConditionStatus, reason string) {
	conditions.Set(object, metav1.Condition{Type: kind, Status: status, Reason: reason})
}

// reportV1Beta1 adds what Cluster API copies from an infrastructure object of contract v1beta1.
func reportV1Beta1(machine *clusterv1.Machine, message string) {
	machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{ //nolint:staticcheck // Providers set it.
		Conditions: clusterv1.Conditions{{Type: clusterv1.InfrastructureReadyV1Beta1Condition, Status: "False", Reason: "TaskFailure", Message: message}}, //nolint:staticcheck // As above.
	}}
}

func TestMachinesMoved(t *testing.T) {
	has := func(replicas, machines int32) *clusterv1.MachineSet {
		set := &clusterv1.MachineSet{}
		set.Spec.Replicas, set.Status.Replicas = &replicas, &machines
		return set
	}
	for name, tc := range map[string]struct {
		before *clusterv1.MachineSet
		change func(*clusterv1.MachineSet)
		want   bool
	}{
		"one more Machine":             {before: has(1, 1), change: func(s *clusterv1.MachineSet) { s.Status.Replicas = new(int32(2)) }},
		"its Machine is being deleted": {before: has(1, 1), change: func(s *clusterv1.MachineSet) { s.Spec.Replicas = new(int32(0)) }},
		"another label":                {before: has(1, 1), change: func(s *clusterv1.MachineSet) { s.Labels = map[string]string{"a": "b"} }},
		"the first Machine":            {before: has(0, 0), change: func(s *clusterv1.MachineSet) { s.Spec.Replicas = new(int32(1)) }, want: true},
		"the last Machine":             {before: has(0, 1), change: func(s *clusterv1.MachineSet) { s.Status.Replicas = new(int32(0)) }, want: true},
		"it is no longer the current one": {before: has(1, 1), want: true, change: func(s *clusterv1.MachineSet) {
			s.Annotations = map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"}
		}},
	} {
		if got := passes(MachinesMoved(), tc.before, tc.change); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func TestMachineChanged(t *testing.T) {
	machine := &clusterv1.Machine{}
	set(machine, clusterv1.MachineReadyCondition, metav1.ConditionFalse, "No")
	set(machine, clusterv1.MachineNodeHealthyCondition, metav1.ConditionUnknown, "Waiting")
	set(machine, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady")
	for name, tc := range map[string]struct {
		change func(*clusterv1.Machine)
		want   bool
	}{
		"nothing":              {change: func(*clusterv1.Machine) {}},
		"a finalizer":          {change: func(m *clusterv1.Machine) { m.Finalizers = []string{"x"} }},
		"a phase":              {change: func(m *clusterv1.Machine) { m.Status.Phase = "Running" }},
		"an address":           {change: func(m *clusterv1.Machine) { m.Status.Addresses = clusterv1.MachineAddresses{{Address: "::1"}} }},
		"its bootstrap data":   {change: func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = new("x") }},
		"another condition":    {change: func(m *clusterv1.Machine) { set(m, clusterv1.MachineReadyCondition, metav1.ConditionTrue, "Yes") }},
		"a message of kubelet": {change: func(m *clusterv1.Machine) { m.Status.Conditions[0].Message = "since a minute" }},

		"a label":       {want: true, change: func(m *clusterv1.Machine) { m.Labels = map[string]string{v1alpha1.NodeClaimUIDLabel: "c"} }},
		"an annotation": {want: true, change: func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""} }},
		"an owner": {want: true, change: func(m *clusterv1.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{{UID: "s", Name: "s", Controller: new(true)}}
		}},
		"its deletion":  {want: true, change: func(m *clusterv1.Machine) { m.DeletionTimestamp = new(metav1.Now()) }},
		"a provider ID": {want: true, change: func(m *clusterv1.Machine) { m.Spec.ProviderID = "sim://m" }},
		"a Node":        {want: true, change: func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }},
		"its Node is removed": {want: true, change: func(m *clusterv1.Machine) {
			set(m, clusterv1.MachineNodeHealthyCondition, metav1.ConditionFalse, clusterv1.MachineNodeDeletedReason)
		}},
		"its Node is no longer Ready, and its instance exists": {change: func(m *clusterv1.Machine) {
			set(m, clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown, clusterv1.MachineNodeReadyUnknownReason)
		}},
		"a failure": {want: true, change: func(m *clusterv1.Machine) {
			set(m, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NoCapacity")
		}},
		"a failed bootstrap": {want: true, change: func(m *clusterv1.Machine) {
			set(m, clusterv1.MachineBootstrapConfigReadyCondition, metav1.ConditionFalse, "No")
		}},
		"its end of a pause": {want: true, change: func(m *clusterv1.Machine) { set(m, clusterv1.PausedCondition, metav1.ConditionFalse, "NotPaused") }},
		"a failure of a provider of contract v1beta1": {want: true, change: func(m *clusterv1.Machine) {
			reportV1Beta1(m, "Insufficient disk space on datastore 'vm-store'.")
		}},
		"a report of such a provider that is no failure": {change: func(m *clusterv1.Machine) { reportV1Beta1(m, "0 of 2 completed") }},
		"its first condition":                            {want: true, change: func(m *clusterv1.Machine) { m.Status.Conditions = nil }},
		"an empty report of such a provider": {change: func(m *clusterv1.Machine) {
			m.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{}
		}},
		"a terminal failure": {want: true, change: func(m *clusterv1.Machine) {
			m.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: new("no")}} //nolint:staticcheck // Providers set it.
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := passes(changed(), machine, tc.change); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// Cluster API shows only once that it acts on a Machine, and of a Machine with a Node a terminal failure is a report that
// its instance no longer exists.
func TestMachineChangedOnce(t *testing.T) {
	running := &clusterv1.Machine{}
	running.Spec.ProviderID, running.Status.NodeRef.Name = "sim://m", "n"
	silent, lost := running.DeepCopy(), running.DeepCopy()
	set(silent, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady")
	set(silent, clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown, clusterv1.MachineNodeReadyUnknownReason)
	set(lost, clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, clusterv1.MachineInfrastructureDeletedReason)
	for name, tc := range map[string]struct {
		machine *clusterv1.Machine
		change  func(*clusterv1.Machine)
	}{
		"Cluster API acts for the first time": {machine: &clusterv1.Machine{}, change: func(m *clusterv1.Machine) { set(m, clusterv1.MachineReadyCondition, metav1.ConditionFalse, "No") }},
		"its instance no longer exists, and its Node is no longer Ready": {machine: lost, change: func(m *clusterv1.Machine) {
			set(m, clusterv1.MachineNodeReadyCondition, metav1.ConditionUnknown, clusterv1.MachineNodeReadyUnknownReason)
		}},
		"its provider gave up on it": {machine: silent, change: func(m *clusterv1.Machine) {
			m.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: new("no")}} //nolint:staticcheck // Providers set it.
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if !passes(changed(), tc.machine, tc.change) {
				t.Error("the update does not pass")
			}
		})
	}
}

func TestMachineSetChanged(t *testing.T) {
	set1 := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	for name, tc := range map[string]struct {
		change func(*clusterv1.MachineSet)
		want   bool
	}{
		"ready replicas": {change: func(s *clusterv1.MachineSet) { s.Status.ReadyReplicas = new(int32(1)) }},
		"another condition": {change: func(s *clusterv1.MachineSet) {
			set(s, clusterv1.MachineSetMachinesReadyCondition, metav1.ConditionTrue, "Ready")
		}},

		"replicas":                  {want: true, change: func(s *clusterv1.MachineSet) { s.Generation++ }},
		"it has acted on replicas":  {want: true, change: func(s *clusterv1.MachineSet) { s.Status.ObservedGeneration = 2 }},
		"it counts another Machine": {want: true, change: func(s *clusterv1.MachineSet) { s.Status.Replicas = new(int32(1)) }},
		"it is blocked": {want: true, change: func(s *clusterv1.MachineSet) {
			set(s, clusterv1.MachineSetScalingUpCondition, metav1.ConditionTrue, "ScalingUp")
		}},
		"it is marked as an older one": {want: true, change: func(s *clusterv1.MachineSet) {
			s.Annotations = map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"}
		}},
		"its deletion": {want: true, change: func(s *clusterv1.MachineSet) { s.DeletionTimestamp = new(metav1.Now()) }},
		"an empty report of the older API version": {change: func(s *clusterv1.MachineSet) {
			s.Status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{}
		}},
		"another condition of the older API version": {change: func(s *clusterv1.MachineSet) {
			s.Status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{V1Beta1: &clusterv1.MachineSetV1Beta1DeprecatedStatus{
				Conditions: clusterv1.Conditions{{Type: clusterv1.ResizedV1Beta1Condition, Status: "False", Message: "resizing"}}, //nolint:staticcheck // As below.
			}}
		}},
		"it could not create Machines": {want: true, change: func(s *clusterv1.MachineSet) {
			s.Status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{V1Beta1: &clusterv1.MachineSetV1Beta1DeprecatedStatus{
				Conditions: clusterv1.Conditions{{Type: clusterv1.MachinesCreatedV1Beta1Condition, Status: "False", Message: "denied"}}, //nolint:staticcheck // No other field has it.
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := passes(changed(), set1, tc.change); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestClaimChanged(t *testing.T) {
	since := func(c *karpv1.NodeClaim, at time.Time) {
		for i := range c.Status.Conditions {
			c.Status.Conditions[i].LastTransitionTime = metav1.NewTime(at)
		}
	}
	claim := &karpv1.NodeClaim{}
	claim.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, "InsufficientCapacity", "")
	since(claim, time.Unix(0, 0))
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		want   bool
	}{
		"another condition": {change: func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized) }},
		"its Node's name":   {change: func(c *karpv1.NodeClaim) { c.Status.NodeName = "n" }},
		"a finalizer":       {change: func(c *karpv1.NodeClaim) { c.Finalizers = []string{"x"} }},
		"a Pod came":        {change: func(c *karpv1.NodeClaim) { c.Status.LastPodEventTime = metav1.Now() }},

		"its launch":       {want: true, change: func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched) }},
		"its registration": {want: true, change: func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered) }},
		"a provider ID":    {want: true, change: func(c *karpv1.NodeClaim) { c.Status.ProviderID = "sim://m" }},
		"its deletion":     {want: true, change: func(c *karpv1.NodeClaim) { c.DeletionTimestamp = new(metav1.Now()) }},
		"a label":          {want: true, change: func(c *karpv1.NodeClaim) { c.Labels = map[string]string{"a": "b"} }},
		"another resource": {want: true, change: func(c *karpv1.NodeClaim) { c.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "r"} }},
		"a stall": {want: true, change: func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonBlocked, "")
		}},
		"another reason within the same second": {want: true, change: func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, "LimitReached", "")
			since(c, time.Unix(0, 0))
		}},
		"a second wait": {want: true, change: func(c *karpv1.NodeClaim) { since(c, time.Unix(60, 0)) }},
	} {
		t.Run(name, func(t *testing.T) {
			if got := passes(changed(), claim, tc.change); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNodeReadyChanged(t *testing.T) {
	ready := func(status corev1.ConditionStatus) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure}, {Type: corev1.NodeReady, Status: status}}
		}
	}
	node := &corev1.Node{}
	ready(corev1.ConditionTrue)(node)
	for name, tc := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"a label":                {change: func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }},
		"it has reported":        {change: func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime.Time = time.Unix(1, 0) }},
		"it is not ready":        {change: ready(corev1.ConditionFalse), want: true},
		"it reports nothing now": {change: ready(corev1.ConditionUnknown), want: true},
	} {
		if got := passes(NodeReadyChanged(), node, tc.change); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
