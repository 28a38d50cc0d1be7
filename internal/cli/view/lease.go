// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
)

// LeaseName is the name of the operator's lease, unless Karpenter's flag --leader-election-name sets another one.
const LeaseName = "karpenter-leader-election"

// Lease is the operator's lease.
type Lease struct {
	coordinationv1.Lease
	// InWorkload reports whether it is in the workload cluster, so that the operator runs there.
	InWorkload bool
}

// Lease returns the operator's lease that was renewed last, in either cluster; nil if there is none, or the user may not list
// leases.
func (v *View) Lease(ctx context.Context) *Lease {
	if v.lease == nil {
		v.lease = v.findLease(ctx)
	}
	return v.lease
}

func (v *View) findLease(ctx context.Context) *Lease {
	served := v.Served()
	// In the management cluster, the lease has the name of the Cluster (package operator), or that of config/clusterctl-management.
	found := v.leases(ctx, true, LeaseName)
	found = append(found, v.leases(ctx, false, fmt.Sprintf("%s.%s.%s", LeaseName, served.Namespace, served.Name), build.Name)...)
	if len(found) == 0 {
		// The operator finds the only Cluster, or this is the lease of another Karpenter.
		found = v.leases(ctx, false, LeaseName)
	}
	if len(found) == 0 {
		return nil
	}
	return lo.ToPtr(lo.MaxBy(found, func(a, b Lease) bool { return lo.FromPtr(a.Spec.RenewTime).After(lo.FromPtr(b.Spec.RenewTime).Time) }))
}

// leases returns the leases with some names in all namespaces of a cluster; none if the user may not list them.
func (v *View) leases(ctx context.Context, workload bool, names ...string) []Lease {
	var found []Lease
	for _, name := range names {
		list := &coordinationv1.LeaseList{}
		if err := v.clusterOf(workload).GetAPIReader().List(ctx, list, client.MatchingFields{"metadata.name": name}); err == nil {
			found = append(found, lo.Map(list.Items, func(l coordinationv1.Lease, _ int) Lease { return Lease{l, workload} })...)
		}
	}
	return found
}

// staleAfter is longer than the operator's lease lasts, and than another one needs to take it (package operator).
const staleAfter = 30 * time.Second

// Stopped returns why no operator runs; empty if one does, or if that is not known.
func (v *View) Stopped(ctx context.Context) string {
	lease := v.Lease(ctx)
	switch {
	case lease == nil:
		return ""
	case lease.Spec.RenewTime == nil:
		return fmt.Sprintf("no operator has Lease %s/%s", lease.Namespace, lease.Name)
	case v.Now.Sub(lease.Spec.RenewTime.Time) <= staleAfter:
		return ""
	default:
		return fmt.Sprintf("no operator has renewed Lease %s/%s since %s", lease.Namespace, lease.Name, lease.Spec.RenewTime.UTC().Format("2006-01-02 15:04:05 MST"))
	}
}
