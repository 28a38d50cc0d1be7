// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// findAgain is the time until the search for leftovers is repeated after an error, such as a missing
// right. No event shows that a right was added.
const findAgain = time.Minute

// watchLeftovers runs once after the start of the operator. A template that was deleted while the
// operator did not run, or that was edited to refer to another kind, can have left copies of a kind
// that no template and no scalable resource names. Their events enqueue the template that they were
// generated for.
func (r *Reconciler) watchLeftovers(ctx context.Context) error {
	find := func(ctx context.Context) (bool, error) {
		err := r.findLeftovers(ctx, r.clusters.Management.GetRESTMapper())
		if err != nil {
			log.FromContext(ctx).Error(err, "cannot find all copies of templates that no longer exist")
		}
		return err == nil, nil
	}
	// It ends with an error only if the operator ends.
	_ = wait.PollUntilContextCancel(ctx, findAgain, true, find)
	return nil
}

// findLeftovers watches all kinds of which copies exist. It reads one object of each kind of provider
// from the API server, because a cache of a kind would have all its objects. It skips kinds that the
// installation gives no right for: the operator could not have created copies of them.
func (r *Reconciler) findLeftovers(ctx context.Context, mapper meta.RESTMapper) error {
	live := r.clusters.Management.GetAPIReader()
	kinds, err := reference.Kinds(ctx, live, mapper)
	errs := []error{err}
	for _, kind := range kinds {
		listable, err := reference.Listable(ctx, r.clusters.Management.GetClient(), mapper, kind, r.clusters.Cluster.Namespace)
		if !listable {
			errs = append(errs, err)
			continue
		}
		copies, err := scalable.Copies(ctx, live, kind, r.clusters.Cluster, client.Limit(1))
		if len(copies) > 0 {
			err = r.kinds.Watch(kind, r.spacing.Later(r.templates.OfGenerated))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
