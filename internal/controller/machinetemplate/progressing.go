// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// readAgain is after what time kinds are read again that could not be read. No event shows that a kind can be
// listed.
const readAgain = time.Minute

// setMachinesProgressing repeats what Cluster API reports for the oldest NodeClaim that waits
// for it (see package scalableresource). The message omits the number of these NodeClaims, because
// it changes often. The condition is Unknown if the infrastructure or bootstrap objects of Machines cannot be
// read: they show why a Machine does not progress.
func (r *Reconciler) setMachinesProgressing(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		return err
	}
	waiting := lo.Filter(claims, func(_ karpv1.NodeClaim, i int) bool {
		return nodeclaims.NeedsMachine(&claims[i]) && nodeclaims.IsStalled(&claims[i])
	})
	conditions := template.StatusConditions()
	if len(waiting) == 0 {
		unlisted, err := r.unlisted(ctx, template)
		switch {
		case err != nil:
			return err
		case unlisted != "":
			conditions.SetUnknownWithReason(v1alpha1.ConditionMachinesProgressing, v1alpha1.ReasonObjectsNotReadable,
				fmt.Sprintf("%s. Until then, only launchTimeoutSeconds shows that a Machine of this template could not be launched", unlisted))
		default:
			conditions.SetTrue(v1alpha1.ConditionMachinesProgressing)
		}
		return nil
	}
	oldest := lo.MinBy(waiting, func(a, b karpv1.NodeClaim) bool {
		return a.CreationTimestamp.Before(&b.CreationTimestamp) || a.CreationTimestamp.Equal(&b.CreationTimestamp) && a.Name < b.Name
	})
	stall := nodeclaims.ConditionOf(&oldest, v1alpha1.ConditionMachineAvailable)
	conditions.SetFalse(v1alpha1.ConditionMachinesProgressing, stall.Reason,
		fmt.Sprintf("NodeClaim %s waits for Cluster API: %s", oldest.Name, stall.Message))
	return nil
}

// unlisted returns why infrastructure or bootstrap objects of a template's Machines cannot be read; empty if they
// can. Templates that have no Machines read none.
func (r *Reconciler) unlisted(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (string, error) {
	resources, err := scalable.List(ctx, r.clusters, client.MatchingLabels{v1alpha1.TemplateLabel: template.Name})
	if err != nil {
		return "", fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	read := sets.New[schema.GroupKind]()
	for _, resource := range resources {
		if all, _ := resource.Machines(); all == 0 && resource.Replicas() == 0 {
			continue
		}
		kinds, err := r.kindsOfMachines(ctx, resource)
		for _, kind := range kinds {
			if err == nil && !read.Has(kind) {
				read.Insert(kind)
				err = r.readOne(ctx, kind)
			}
		}
		if unlisted := (reference.Unlisted{}); errors.As(err, &unlisted) {
			return unlisted.Error(), nil
		}
		// Other conditions report kinds that Cluster API cannot use.
		if unusable := reference.Unusable(""); err != nil && !errors.As(err, &unusable) {
			return "", err
		}
	}
	return "", nil
}

// kindsOfMachines returns the kinds of infrastructure and bootstrap objects that the Machines of a resource have.
func (r *Reconciler) kindsOfMachines(ctx context.Context, resource *scalable.Resource) ([]schema.GroupKind, error) {
	var kinds []schema.GroupKind
	for _, ref := range resource.References() {
		// Cluster API names what it creates from a template in this way (controllers/external/util.go).
		kinds = append(kinds, schema.GroupKind{Group: ref.APIGroup, Kind: strings.TrimSuffix(ref.Kind, clusterv1.TemplateSuffix)})
	}
	if resource.Kind().Name() != v1alpha1.ScalableResourceKindMachinePool {
		return kinds, nil
	}
	pool, err := scalable.InfrastructureOf(ctx, r.clusters, resource)
	if err != nil || pool == nil {
		return kinds, err
	}
	if kind, _, err := unstructured.NestedString(pool.Object, "status", "infrastructureMachineKind"); err == nil && kind != "" {
		kinds = append(kinds, schema.GroupKind{Group: pool.GroupVersionKind().Group, Kind: kind})
	}
	return kinds, nil
}

// readOne reads an object of a kind from the cache.
func (r *Reconciler) readOne(ctx context.Context, kind schema.GroupKind) error {
	management := r.clusters.Management.GetClient()
	gvk, err := reference.Kind(ctx, management, kind)
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return management.List(ctx, list, client.InNamespace(r.clusters.Cluster.Namespace), client.Limit(1), client.UnsafeDisableDeepCopy)
}
