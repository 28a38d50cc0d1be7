// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// api is an API server that answers every request in the same way.
type api struct {
	to   *connection.Connection
	down bool
}

func (a *api) RoundTrip(*http.Request) (*http.Response, error) {
	if a.down {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// set lets requests fail or not, and sends one.
func (a *api) set(t *testing.T, down bool) {
	t.Helper()
	a.down = down
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api/version", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.to.Transport(a).RoundTrip(request)
	if (err != nil) != down {
		t.Fatal(err)
	}
	if err == nil {
		_ = response.Body.Close()
	}
}

// Either cluster can show that something exists. So an interruption or outage of one of them counts, and for what settles in the
// management cluster only that one.
func TestClustersDuringAnOutage(t *testing.T) {
	const forever = 1000 * time.Hour
	for name, tc := range map[string]struct {
		do func(workload, management *api, pass func(time.Duration))
		// guard and outage are the clusters in the errors; empty for none.
		guard, outage []string
		// up and settles are the results; forever or more for never.
		up, settles time.Duration
	}{
		"nothing happens": {do: func(_, _ *api, pass func(time.Duration)) { pass(time.Hour) }, up: forever, settles: 90*time.Second - time.Hour},
		"after the start": {do: func(*api, *api, func(time.Duration)) {}, up: forever, settles: 90 * time.Second},
		"the management cluster is interrupted": {
			do: func(_, management *api, pass func(time.Duration)) {
				pass(time.Hour)
				management.set(t, true)
				pass(time.Second)
			},
			guard: []string{"management"}, up: forever, settles: 90 * time.Second,
		},
		"an outage of the management cluster": {
			do: func(_, management *api, pass func(time.Duration)) {
				pass(time.Hour)
				management.set(t, true)
				pass(time.Minute)
			},
			guard: []string{"management"}, outage: []string{"management"}, settles: 90 * time.Second,
		},
		"an outage of the workload cluster": {
			do: func(workload, _ *api, pass func(time.Duration)) {
				pass(time.Hour)
				workload.set(t, true)
				pass(time.Minute)
			},
			guard: []string{"workload"}, outage: []string{"workload"}, settles: 90*time.Second - time.Hour - time.Minute,
		},
		"an outage of both": {
			do: func(workload, management *api, pass func(time.Duration)) {
				workload.set(t, true)
				management.set(t, true)
				pass(time.Minute)
			},
			guard: []string{"workload", "management"}, outage: []string{"workload", "management"}, settles: 90 * time.Second,
		},
		"an outage of one that has ended": {
			do: func(_, management *api, pass func(time.Duration)) {
				management.set(t, true)
				pass(time.Minute)
				management.set(t, false)
				pass(30 * time.Second)
			},
			up: 30 * time.Second, settles: time.Minute,
		},
		"an outage of one that has ended during one of the other": {
			do: func(workload, management *api, pass func(time.Duration)) {
				workload.set(t, true)
				management.set(t, true)
				pass(time.Minute)
				management.set(t, false)
				pass(30 * time.Second)
			},
			guard: []string{"workload"}, outage: []string{"workload"}, settles: time.Minute,
		},
		"the later of two outages counts": {
			do: func(workload, management *api, pass func(time.Duration)) {
				management.set(t, true)
				pass(time.Minute)
				management.set(t, false)
				workload.set(t, true)
				pass(time.Minute)
				workload.set(t, false)
				pass(time.Second)
			},
			up: time.Second, settles: 90*time.Second - time.Minute - time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
			workload, management := &api{}, &api{}
			workload.to = connection.New(connection.Workload, "https://w", clock, clock)
			management.to = connection.New(connection.Management, "https://m", clock, clock)
			for _, a := range []*api{workload, management} {
				a.to.Filled()
			}
			clusters := &Clusters{ToWorkload: workload.to, ToManagement: management.to}
			tc.do(workload, management, clock.Step)
			expectClusters(t, "Guard", clusters.Guard(t.Context()), tc.guard)
			expectClusters(t, "Outage", clusters.Outage(t.Context()), tc.outage)
			if up := clusters.Up(); up != tc.up && (tc.up < forever || up < forever) {
				t.Errorf("up for %s, want %s", up, tc.up)
			}
			if got := clusters.SettlesIn(); got != tc.settles {
				t.Errorf("settles in %s, want %s", got, tc.settles)
			}
		})
	}
}

// expectClusters expects an error that names clusters; none if there are no names.
func expectClusters(t *testing.T, what string, err error, names []string) {
	t.Helper()
	var got []string
	for _, name := range []string{"workload", "management"} {
		if err != nil && strings.Contains(err.Error(), "the "+name+" cluster ") {
			got = append(got, name)
		}
	}
	if diff := cmp.Diff(names, got); diff != "" || (err != nil) != (len(names) > 0) {
		t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
	}
}

// Without connections, such as in unit tests, nothing was ever interrupted. Timings can be shorter.
func TestSettlesIn(t *testing.T) {
	if clusters := (&Clusters{}); clusters.SettlesIn() > 0 || clusters.Guard(t.Context()) != nil || clusters.Outage(t.Context()) != nil {
		t.Error("clusters without connections are interrupted")
	}
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	clusters := &Clusters{ToManagement: connection.New(connection.Management, "https://m", clock, clock), Timings: Timings{Recovery: time.Second, RecoveryLimit: time.Minute}}
	clusters.ToManagement.Filled()
	clock.Step(400 * time.Millisecond)
	if got := clusters.SettlesIn(); got != 600*time.Millisecond {
		t.Errorf("settles in %s, want 600ms", got)
	}
}

func TestFailureDomains(t *testing.T) {
	cluster := &clusterv1.Cluster{}
	cluster.Status.FailureDomains = []clusterv1.FailureDomain{{Name: "b"}, {Name: "a", ControlPlane: new(true)}}
	if diff := cmp.Diff([]string{"a", "b"}, FailureDomains(cluster)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIsTemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		ref  *karpv1.NodeClassReference
		want bool
	}{
		"no reference":  {},
		"a template":    {ref: &karpv1.NodeClassReference{Group: "karpenter.cluster.x-k8s.io", Kind: "KarpenterMachineTemplate", Name: "x"}, want: true},
		"another kind":  {ref: &karpv1.NodeClassReference{Group: "karpenter.cluster.x-k8s.io", Kind: "InstanceTypeCatalog", Name: "x"}},
		"another group": {ref: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "KarpenterMachineTemplate", Name: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsTemplate(tc.ref); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
