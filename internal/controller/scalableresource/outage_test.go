// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// old is a Machine on which Cluster API has worked for an hour.
func old(m *clusterv1.Machine) {
	m.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady"}}
}

// A watch that is open and delivers nothing fails no launch: the Machine is read before its offering is marked.
func TestLaunchTimeoutWithAStaleWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.Machine)
		marks  int
	}{
		"the Machine has a provider ID by now": {change: withID("real://m")},
		"the Machine has a Node by now":        {change: func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "m" }},
		"the Machine has neither":              {change: func(*clusterv1.Machine) {}, marks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(launched("c"), machine("m", old, linkedTo("c")))
			w.machines = []clusterv1.Machine{*w.machine(t, "m")}
			r := w.newProcess()
			w.setMachine(t, "m", func(m *clusterv1.Machine) { delete(m.Labels, v1alpha1.NodeClaimUIDLabel) })
			knowLinked(t, r)
			w.setMachine(t, "m", func(m *clusterv1.Machine) { linkedTo("c")(m); tc.change(m) })
			for range 2 {
				if err := reconcileOnce(t, r); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.marks(t); len(got) != tc.marks {
				t.Errorf("got the marks %+v, want %d", got, tc.marks)
			}
		})
	}
}

// A launch also fails if its Machine no longer exists, and only the cache has it.
func TestLaunchTimeoutWithADeletedMachine(t *testing.T) {
	w := newWorld(launched("c"))
	w.machines = []clusterv1.Machine{*machine("m", old, linkedTo("c"))}
	r := w.newProcess()
	if err := reconcileOnce(t, r); err != nil {
		t.Fatal(err)
	}
	if got := w.marks(t); len(got) != 1 {
		t.Errorf("got the marks %+v, want one", got)
	}
	if launched, err := r.isLaunched(t.Context(), w.claim(t, "c"), &decided{Snapshot: &snapshot.Snapshot{}}); launched || err != nil {
		t.Errorf("without a Machine: launched: %t (%v)", launched, err)
	}
}

// During an interruption no launch fails, and launchTimeoutSeconds starts again at the end of an outage.
func TestNoLaunchFailsDuringAnOutage(t *testing.T) {
	w := newWorld(launched("c"), machine("m", old, linkedTo("c")))
	clock := clocktesting.NewFakeClock(now)
	r := w.newProcess()
	r.clusters.ToManagement = connection.New(connection.Management, "https://management", clock, clock)
	if err := reconcileOnce(t, r); err == nil {
		t.Error("got no error while the cache is not filled")
	} else if _, unreachable := errors.AsType[*connection.Error](err); !unreachable {
		t.Error(err)
	}
	if got := w.marks(t); len(got) > 0 {
		t.Errorf("got the marks %+v during an interruption", got)
	}
	r.clusters.ToManagement.Filled()
	// A clock that is set ends all timers of launches, like an outage.
	wall := clocktesting.NewFakeClock(now)
	r.clusters.ToWorkload = connection.New(connection.Workload, "https://workload", clock, wall)
	r.clusters.ToWorkload.Filled()
	wall.Step(time.Hour)
	if err := reconcileOnce(t, r); err != nil {
		t.Error(err)
	}
	if got := w.marks(t); len(got) > 0 {
		t.Errorf("got the marks %+v right after an outage", got)
	}
	clock.Step(time.Hour)
	wall.Step(time.Hour)
	if err := reconcileOnce(t, r); err != nil {
		t.Error(err)
	}
	if got := w.marks(t); len(got) != 1 {
		t.Errorf("got the marks %+v an hour later, want one", got)
	}
}
