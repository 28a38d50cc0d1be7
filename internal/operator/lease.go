// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A leader that cannot renew its lease for renewDeadline exits, as by default. Once it has ended, a standby leads within
// leaseDuration and 4.4 times retryPeriod, 18.6 s: it tries every 1 to 2.2 retryPeriods, and counts from when it has seen
// the last renewal (client-go: tools/leaderelection/leaderelection.go). With the defaults of controller-runtime it is 23.8 s.
const (
	leaseDuration = 12 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 1500 * time.Millisecond
)

// exitWithoutLease ends the process as soon as another one has its lease. A leader that was paused for longer than the lease
// lasts would otherwise act beside the new one for another renewDeadline, because that begins with each renewal (client-go:
// tools/leaderelection/leaderelection.go, renew). It does not stop gracefully: what it would still write belongs to the new
// leader.
func exitWithoutLease(mgr manager.Manager, home *rest.Config, key types.NamespacedName) error {
	reader, err := client.New(home, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return fmt.Errorf("connecting to the cluster %s, which has the lease: %w", clients.Server(home), err)
	}
	// The manager starts it when this process leads.
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := awaitOtherHolder(ctx, retryPeriod, func(ctx context.Context) (string, error) {
			lease := &coordinationv1.Lease{}
			err := reader.Get(ctx, key, lease)
			return ptr.Deref(lease.Spec.HolderIdentity, ""), err
		}); err != nil {
			log.FromContext(ctx).Error(err, "this process no longer leads, and exits", "Lease", key)
			os.Exit(1)
		}
		return nil
	}))
}

// awaitOtherHolder returns an error when the holder of a lease is another one than at the beginning. It returns nil when the
// context ends. A failed request shows nothing: leader election decides when the lease is lost.
func awaitOtherHolder(ctx context.Context, interval time.Duration, holder func(context.Context) (string, error)) error {
	own := ""
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		now, err := holder(ctx)
		switch {
		case err != nil || now == "":
			return false, nil
		case own == "":
			own = now
		case now != own:
			return false, fmt.Errorf("%s has the lease of %s", now, own)
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
