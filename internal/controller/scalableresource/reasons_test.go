// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A reason is logged once, until it changes.
func TestLogReasons(t *testing.T) {
	var logged []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{Verbosity: 1}))
	r := &Reconciler{}
	for _, reasons := range []map[string]planner.Reason{
		{"replicas": planner.RequestedNotCreated},
		{"replicas": planner.RequestedNotCreated},
		{"replicas": planner.RequestedNotCreated, "NodeClaim c": planner.LimitIsReached},
		nil,
		{"replicas": planner.RequestedNotCreated},
	} {
		r.logReasons(ctx, &decided{Snapshot: &snapshot.Snapshot{Name: "general"}, Plan: planner.Plan{Reasons: reasons}})
	}
	line := func(what string, why planner.Reason) string {
		return `"level"=1 "msg"="waiting" "resource"="general" "what"="` + what + `" "because"="` + string(why) + `"`
	}
	want := []string{line("replicas", planner.RequestedNotCreated), line("NodeClaim c", planner.LimitIsReached), line("replicas", planner.RequestedNotCreated)}
	if diff := cmp.Diff(want, logged); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// roundTripper answers each request with the same status.
type roundTripper struct{ status int }

// RoundTrip implements http.RoundTripper.
func (r *roundTripper) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: r.status, Status: http.StatusText(r.status), Body: http.NoBody}, nil
}

// disturbed returns a connection that was interrupted a number of times, once in a minute, an hour after it was made.
func disturbed(t *testing.T, clock *clocktesting.FakeClock, times int) *connection.Connection {
	t.Helper()
	to := connection.New(connection.Management, "https://m", clock, clock)
	to.Filled()
	clock.Step(time.Hour)
	server := &roundTripper{}
	for range times {
		for _, server.status = range []int{http.StatusBadGateway, http.StatusOK} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://m/version", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := to.Transport(server).RoundTrip(request); err != nil { //nolint:bodyclose // It has none.
				t.Fatal(err)
			}
		}
		clock.Step(time.Minute)
	}
	return to
}

// Each reconcile of a MachinePool that waits for the end of disturbances reports that.
func TestReconcileReportsUnsettled(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "general", Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
	pool.Spec.Replicas, pool.Spec.Template.Spec.InfrastructureRef = new(int32(2)), *template().Spec.Template.Spec.InfrastructureRef
	clusters, clock, told := clustersWith(fixture.Served, cluster, &[]string{}, cluster, pool), clocktesting.NewFakeClock(fixture.Noon), &published{}
	clusters.ToManagement = disturbed(t, clock, 3)
	r := newReconciler(clusters, catalog.New(clusters), told, clock)
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}); err != nil {
		t.Fatal(err)
	}
	if len(*told) != 1 || !strings.Contains((*told)[0].Message, "GET /version: Bad Gateway") {
		t.Errorf("got events %+v", *told)
	}
}

// A MachinePool that should shrink reports disturbances that follow each other, but not a single one.
func TestReportUnsettled(t *testing.T) {
	for name, tc := range map[string]struct {
		disturbances int
		reason       planner.Reason
		want         bool
	}{
		"one disturbance":                     {disturbances: 1, reason: planner.NotSettled},
		"several":                             {disturbances: 3, reason: planner.NotSettled, want: true},
		"several, and nothing waits":          {disturbances: 3},
		"several, and another reason":         {disturbances: 3, reason: planner.RequestedNotCreated},
		"none since the start an hour before": {reason: planner.NotSettled},
	} {
		t.Run(name, func(t *testing.T) {
			to := disturbed(t, clocktesting.NewFakeClock(fixture.Noon), tc.disturbances)
			recorder := &published{}
			r := &Reconciler{clusters: &clients.Clusters{ToManagement: to}, recorder: recorder}
			r.reportUnsettled(&decided{Snapshot: &snapshot.Snapshot{Resource: scalable.New(fixture.MachinePool(nil))}, Plan: planner.Plan{Reasons: map[string]planner.Reason{"replicas": tc.reason}}})
			if got := len(*recorder) > 0; got != tc.want {
				t.Errorf("got an event: %t, want %t", got, tc.want)
			}
			for _, e := range *recorder {
				if !strings.Contains(e.Message, ": GET /version: Bad Gateway. Check the API server and what is in front of it; after 15m0s of this") {
					t.Errorf("got message %q, want the cause and the limit", e.Message)
				}
			}
		})
	}
}
