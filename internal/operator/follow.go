// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// askEvery is how often a cluster is asked during an interruption.
const askEvery = 2 * time.Second

// follow tells a connection when the cache of its cluster is filled, and when this process leads. It calls
// ask during interruptions, which must read from the API server.
func follow(mgr manager.Manager, cluster cluster.Cluster, connection *connection.Connection, ask func(context.Context) error) error {
	connection.LeadsFrom(mgr.Elected())
	return mgr.Add(whileStandby(func(ctx context.Context) error {
		if cluster.GetCache().WaitForCacheSync(ctx) {
			connection.Filled()
		}
		askWhileInterrupted(ctx, connection, askEvery, ask)
		return nil
	}))
}

// askWhileInterrupted calls ask in intervals while a connection is interrupted. An interruption by a failed
// request ends with an answer, and while Guard fails, it can take minutes until anything else asks.
func askWhileInterrupted(ctx context.Context, connection *connection.Connection, interval time.Duration, ask func(context.Context) error) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if connection.Err() == nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, 5*interval)
		defer cancel()
		_ = ask(ctx) // The connection sees the answer, or that there is none.
	}, interval)
}

// whileStandby is a runnable that also runs in a process that does not lead.
type whileStandby func(context.Context) error

// Start runs it.
func (f whileStandby) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection returns false.
func (whileStandby) NeedLeaderElection() bool { return false }
