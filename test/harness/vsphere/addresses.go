// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/guest"
)

// PoolKind is the kind of the pools of Cluster API's in-cluster IPAM provider.
var PoolKind = schema.GroupVersionKind{Group: "ipam.cluster.x-k8s.io", Version: "v1alpha2", Kind: "InClusterIPPool"}

// prefix is that of the addresses of the pool.
const prefix = 24

// Addresses is the in-cluster IPAM provider, for one pool whose spec lists its addresses one by one.
type Addresses struct {
	// Management is the management cluster, with the pool.
	Management client.Client
	Pool       client.ObjectKey
	Log        logr.Logger
}

// Run gives each IPAddressClaim of the pool an IPAddress until the context ends.
func (a *Addresses) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := a.act(ctx); err != nil && ctx.Err() == nil {
			a.Log.Info("The pool of addresses failed", "error", err.Error())
		}
	}, guest.Interval)
}

func (a *Addresses) act(ctx context.Context) error {
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(PoolKind)
	claims, addresses := &ipamv1.IPAddressClaimList{}, &ipamv1.IPAddressList{}
	if err := errors.Join(
		a.Management.Get(ctx, a.Pool, pool),
		a.Management.List(ctx, claims, client.InNamespace(a.Pool.Namespace)),
		a.Management.List(ctx, addresses, client.InNamespace(a.Pool.Namespace)),
	); err != nil {
		return err
	}
	all, _, err := unstructured.NestedStringSlice(pool.Object, "spec", "addresses")
	if err != nil {
		return err
	}
	byClaim := lo.SliceToMap(addresses.Items, func(address ipamv1.IPAddress) (string, *ipamv1.IPAddress) {
		return address.Spec.ClaimRef.Name, &address
	})
	free := lo.Without(all, lo.Map(addresses.Items, func(address ipamv1.IPAddress, _ int) string { return address.Spec.Address })...)
	var errs []error
	for i := range claims.Items {
		claim := &claims.Items[i]
		address := byClaim[claim.Name]
		delete(byClaim, claim.Name)
		if address == nil && len(free) > 0 && claim.DeletionTimestamp.IsZero() {
			address = a.newAddress(claim, free[0])
			free = free[1:]
			errs = append(errs, a.Management.Create(ctx, address))
		}
		if address != nil && claim.Status.AddressRef.Name == "" {
			claim.Status.AddressRef.Name = address.Name
			errs = append(errs, client.IgnoreNotFound(a.Management.Status().Update(ctx, claim)))
		}
	}
	for _, address := range byClaim { // their claims no longer exist
		errs = append(errs, client.IgnoreNotFound(a.Management.Delete(ctx, address)))
	}
	return errors.Join(append(errs, a.count(ctx, pool, len(all), len(free)))...)
}

// newAddress returns the address of a claim.
func (a *Addresses) newAddress(claim *ipamv1.IPAddressClaim, address string) *ipamv1.IPAddress {
	return &ipamv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name},
		Spec: ipamv1.IPAddressSpec{
			ClaimRef: ipamv1.IPAddressClaimReference{Name: claim.Name}, PoolRef: claim.Spec.PoolRef,
			Address: address, Prefix: lo.ToPtr[int32](prefix),
		},
	}
}

// count writes how many addresses the pool has, if that has changed.
func (a *Addresses) count(ctx context.Context, pool *unstructured.Unstructured, total, free int) error {
	counted := map[string]any{"total": int64(total), "used": int64(total - free), "free": int64(free)}
	if before, _, _ := unstructured.NestedMap(pool.Object, "status", "ipAddresses"); reflect.DeepEqual(before, counted) {
		return nil
	}
	if err := unstructured.SetNestedMap(pool.Object, counted, "status", "ipAddresses"); err != nil {
		return fmt.Errorf("the status of the pool: %w", err)
	}
	return a.Management.Status().Update(ctx, pool)
}
