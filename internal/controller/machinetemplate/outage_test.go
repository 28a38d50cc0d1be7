// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// unreachable is a transport to an API server that does not answer.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// interrupt lets a request fail.
func interrupt(t *testing.T, to *connection.Connection) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api/version", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := to.Transport(unreachable{}).RoundTrip(request); err == nil {
		_ = response.Body.Close()
		t.Fatal("the request is answered")
	}
}

// An outage is reported, an interruption that is brief is not, and a recorded deletion of the Cluster stays.
func TestSetUnreachable(t *testing.T) {
	const message = "the management cluster https://m cannot be reached, or the cache of it is behind: launches and deletions wait until it answers"
	for name, tc := range map[string]struct {
		interrupted time.Duration // 0 if the cluster can be reached
		before      string        // reason of the condition; empty if it is True
		want        bool
		wantReason  string
	}{
		"it can be reached":                                 {},
		"an interruption":                                   {interrupted: time.Second},
		"an outage":                                         {interrupted: time.Minute, want: true, wantReason: v1alpha1.ReasonClusterUnreachable},
		"an outage that goes on":                            {interrupted: time.Hour, before: v1alpha1.ReasonClusterUnreachable, want: true, wantReason: v1alpha1.ReasonClusterUnreachable},
		"an outage while the Cluster is paused":             {interrupted: time.Minute, before: v1alpha1.ReasonClusterPaused, want: true, wantReason: v1alpha1.ReasonClusterUnreachable},
		"an outage while the Cluster is being deleted":      {interrupted: time.Minute, before: v1alpha1.ReasonClusterDeleting, want: true, wantReason: v1alpha1.ReasonClusterDeleting},
		"an outage after the Cluster was deleted":           {interrupted: time.Minute, before: v1alpha1.ReasonClusterDeleted, want: true, wantReason: v1alpha1.ReasonClusterDeleted},
		"a Cluster that was paused and that can be reached": {before: v1alpha1.ReasonClusterPaused, wantReason: v1alpha1.ReasonClusterPaused},
		"an interruption after an outage that was reported": {interrupted: time.Second, before: v1alpha1.ReasonClusterUnreachable, wantReason: v1alpha1.ReasonClusterUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(fixture.Noon)
			clusters := fixture.Clusters()
			clusters.ToManagement = connection.New(connection.Management, "https://m", clock, clock)
			clusters.ToManagement.Filled()
			clock.Step(time.Hour)
			if tc.interrupted > 0 {
				interrupt(t, clusters.ToManagement)
				clock.Step(tc.interrupted)
			}
			template := &v1alpha1.KarpenterMachineTemplate{}
			for _, condition := range []string{
				v1alpha1.ConditionClusterReady, v1alpha1.ConditionFromReady, v1alpha1.ConditionInfrastructureReady,
				v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady,
			} {
				template.StatusConditions().SetTrue(condition)
			}
			if tc.before != "" {
				template.StatusConditions().SetFalse(v1alpha1.ConditionClusterReady, tc.before, "before")
			}
			others := func() []status.Condition {
				var found []status.Condition
				for _, condition := range template.Status.Conditions {
					if condition.Type != v1alpha1.ConditionClusterReady && condition.Type != status.ConditionReady {
						found = append(found, condition)
					}
				}
				return found
			}
			before := others()
			r := &Reconciler{clusters: clusters}
			got, err := r.setUnreachable(t.Context(), template)
			if err != nil || got != tc.want {
				t.Errorf("got %t and %v, want %t", got, err, tc.want)
			}
			ready := template.StatusConditions().Get(v1alpha1.ConditionClusterReady)
			if ready.IsTrue() != (tc.wantReason == "") || tc.wantReason != "" && ready.Reason != tc.wantReason {
				t.Errorf("got %s with reason %s, want %q", ready.Status, ready.Reason, tc.wantReason)
			}
			if tc.want && tc.wantReason == v1alpha1.ReasonClusterUnreachable && ready.Message != message {
				t.Errorf("got the message %q, want %q", ready.Message, message)
			}
			if root := template.StatusConditions().Root(); tc.want && (root.Reason != tc.wantReason || root.Status != metav1.ConditionFalse || !strings.Contains(root.Message, ready.Message)) {
				t.Errorf("got Ready %s with reason %s and message %q", root.Status, root.Reason, root.Message)
			}
			if diff := cmp.Diff(before, others()); diff != "" {
				t.Errorf("other conditions have changed (-want +got):\n%s", diff)
			}
		})
	}
}

// During an outage, nothing is read to set the other conditions.
func TestStatusDuringAnOutage(t *testing.T) {
	c := newCell(newTemplate())
	if stored, err := c.reconcile(t, "general"); err != nil || !stored.StatusConditions().Root().IsTrue() {
		t.Fatalf("got %v and %+v", err, stored.Status.Conditions)
	}
	c.clusters.ToManagement = connection.New(connection.Management, "https://m", c.clock, c.clock)
	c.clusters.ToManagement.Filled()
	interrupt(t, c.clusters.ToManagement)
	c.clock.Step(time.Minute)
	if err := c.Delete(t.Context(), named(infrastructureKind, "workers")); err != nil {
		t.Fatal(err)
	}
	stored, err := c.reconcile(t, "general")
	if err != nil {
		t.Fatal(err)
	}
	conditions := stored.StatusConditions()
	if got := conditions.Get(v1alpha1.ConditionClusterReady); !got.IsFalse() || got.Reason != v1alpha1.ReasonClusterUnreachable {
		t.Errorf("got %+v, want that the cluster cannot be reached", got)
	}
	if got := conditions.Get(v1alpha1.ConditionInfrastructureReady); !got.IsTrue() {
		t.Errorf("got %+v, want what was known before", got)
	}
}

// No watch shows that a cluster cannot be reached, or can be again. All templates are reconciled then.
func TestFollowConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		template := func(name string) *v1alpha1.KarpenterMachineTemplate {
			return &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		clusters := fixture.Clusters(template("a"), template("b"))
		clusters.ToWorkload = connection.New(connection.Workload, "https://w", clock.RealClock{}, clock.RealClock{})
		clusters.ToManagement = connection.New(connection.Management, "https://m", clock.RealClock{}, clock.RealClock{})
		r := &Reconciler{clusters: clusters, templates: enqueue.NewTemplates(clusters)}
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		ctx, cancel := context.WithCancel(t.Context())
		for _, connection := range r.connections() {
			if err := connection.Start(ctx, queue); err != nil {
				t.Fatal(err)
			}
		}
		enqueued := func() []string {
			synctest.Wait()
			var names []string
			for range queue.Len() {
				request, _ := queue.Get()
				names = append(names, request.Name)
				queue.Done(request)
			}
			return names
		}
		both := []string{"a", "b"}
		for _, step := range []struct {
			name string
			do   func()
			want []string
		}{
			{name: "the start", do: func() {}, want: both},
			{name: "the cache of one cluster is filled", do: clusters.ToWorkload.Filled, want: both},
			{name: "and that of the other", do: clusters.ToManagement.Filled, want: both},
			{name: "nothing happens", do: func() { time.Sleep(time.Hour) }},
			{name: "the management cluster does not answer", do: func() { interrupt(t, clusters.ToManagement) }, want: both},
			{name: "it still does not", do: func() { interrupt(t, clusters.ToManagement) }},
			{name: "nor does the workload cluster", do: func() { interrupt(t, clusters.ToWorkload) }, want: both},
		} {
			step.do()
			if diff := cmp.Diff(step.want, enqueued()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
		}
		cancel()
		synctest.Wait()
	})
}

// A cluster without a connection never fails, so there is nothing to follow.
func TestFollowNoConnections(t *testing.T) {
	r := &Reconciler{clusters: fixture.Clusters()}
	if got := r.connections(); len(got) > 0 {
		t.Errorf("got %v, want none", got)
	}
}
