// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// A reason is logged once, until it changes.
func TestLogReasons(t *testing.T) {
	var logged []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{Verbosity: 1}))
	r := &Reconciler{}
	for _, reasons := range []map[string]planner.Reason{
		{"replicas": planner.RequestedNotCreated},
		{"replicas": planner.RequestedNotCreated},
		{"replicas": planner.RequestedNotCreated, "NodeClaim c": snapshot.LimitIsReached},
		nil,
		{"replicas": planner.RequestedNotCreated},
	} {
		r.logReasons(ctx, &snapshot.Snapshot{Name: "general", Plan: planner.Plan{Reasons: reasons}})
	}
	line := func(what string, why planner.Reason) string {
		return `"level"=1 "msg"="waiting" "resource"="general" "what"="` + what + `" "because"="` + string(why) + `"`
	}
	want := []string{line("replicas", planner.RequestedNotCreated), line("NodeClaim c", snapshot.LimitIsReached), line("replicas", planner.RequestedNotCreated)}
	if diff := cmp.Diff(want, logged); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
