// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// Resource is a scalable resource: an object of one of the kinds.
type Resource struct {
	metav1.Object
	kind Kind
}

// fields are the fields of an object that all kinds have. The pointers point into it.
type fields struct {
	replicas *int32
	template *clusterv1.MachineTemplateSpec
	// machines and ready are how many there are by its status.
	machines, ready *int32
	// paused reports whether its spec pauses it.
	paused bool
}

// Timestamps are the annotations of a scalable resource with times.
var Timestamps = []string{v1alpha1.ReplicasSetAtAnnotation, v1alpha1.ReplicasLoweredAtAnnotation}

// New returns a MachineDeployment or MachinePool as a scalable resource.
func New(object client.Object) *Resource {
	_, isPool := object.(*clusterv1.MachinePool)
	return &Resource{Object: object, kind: kindNamed(lo.Ternary(isPool, v1alpha1.ScalableResourceKindMachinePool, v1alpha1.ScalableResourceKindMachineDeployment))}
}

// API returns the object itself, as clients need it.
func (r *Resource) API() client.Object { return r.Object.(client.Object) }

// Kind returns the kind of the resource.
func (r *Resource) Kind() Kind { return r.kind }

// Key returns namespace and name.
func (r *Resource) Key() types.NamespacedName { return client.ObjectKeyFromObject(r.API()) }

// String returns kind, namespace and name, for errors.
func (r *Resource) String() string { return fmt.Sprintf("%s %s", r.kind.Name(), r.Key()) }

// DeepCopy returns a copy.
func (r *Resource) DeepCopy() *Resource {
	return New(r.API().DeepCopyObject().(client.Object))
}

// Replicas returns those that are wanted; zero if there are none written.
func (r *Resource) Replicas() int32 { return lo.FromPtr(r.kind.fields(r.API()).replicas) }

// HasReplicas tells whether replicas are written.
func (r *Resource) HasReplicas() bool { return r.kind.fields(r.API()).replicas != nil }

// SetReplicas writes the replicas that are wanted from now on.
func (r *Resource) SetReplicas(replicas int32, now time.Time) {
	if !r.HasReplicas() || r.Replicas() != replicas {
		r.kind.setReplicas(r.API(), replicas, now)
	}
}

// Machines returns how many Machines the status tells of, and how many are ready.
func (r *Resource) Machines() (all, ready int32) {
	fields := r.kind.fields(r.API())
	return lo.FromPtr(fields.machines), lo.FromPtr(fields.ready)
}

// MachineTemplate returns what all Machines of the resource have.
func (r *Resource) MachineTemplate() *clusterv1.MachineTemplateSpec {
	return r.kind.fields(r.API()).template
}

// References returns what the resource refers to.
func (r *Resource) References() []clusterv1.ContractVersionedObjectReference {
	spec := r.MachineTemplate().Spec
	return lo.Filter([]clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.Bootstrap.ConfigRef},
		func(ref clusterv1.ContractVersionedObjectReference, _ int) bool { return ref.IsDefined() })
}

// OwnerReference returns a reference to the resource, for what it refers to.
func (r *Resource) OwnerReference() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: string(r.kind.Name()), Name: r.GetName(), UID: r.GetUID()}
}

// conditions returns the object as one that has conditions.
func (r *Resource) Conditions() conditions.Getter { return r.Object.(conditions.Getter) }

// Get returns the scalable resource of a name from the cache; nil if there is none. Of
// two, which have other kinds, it is the one that this operator has made or adopted.
func Get(ctx context.Context, clusters *operator.Clusters, name string) (*Resource, error) {
	var found *Resource
	key := types.NamespacedName{Namespace: clusters.Cluster.Namespace, Name: name}
	for _, kind := range kinds {
		object, _ := kind.empty()
		if err := clusters.Management.GetClient().Get(ctx, key, object); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, fmt.Errorf("getting %s %s: %w", kind.Name(), key, err)
		}
		resource := New(object)
		if resource.GetLabels()[v1alpha1.TemplateLabel] != "" {
			return resource, nil
		}
		if found == nil {
			found = resource
		}
	}
	return found, nil
}

// List returns scalable resources of all kinds from the cache.
func List(ctx context.Context, clusters *operator.Clusters, options ...client.ListOption) ([]*Resource, error) {
	var resources []*Resource
	for _, kind := range kinds {
		_, list := kind.empty()
		if err := clusters.Management.GetClient().List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("listing %ss: %w", kind.Name(), err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("listing %ss: %w", kind.Name(), err)
		}
		for _, item := range items {
			resources = append(resources, New(item.(client.Object)))
		}
	}
	return resources, nil
}

// IsCurrent tells whether the API server has the replicas that the cache has, set at the
// same time. It is asked before a Machine is let go, which cannot be taken back: with a
// cache that is behind, replicas may count it again, or have been lowered only just now.
func (r *Resource) IsCurrent(ctx context.Context, clusters *operator.Clusters) (bool, error) {
	object, _ := r.kind.empty()
	if err := clusters.Management.GetAPIReader().Get(ctx, r.Key(), object); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil // there is nothing that acts on replicas
		}
		return false, fmt.Errorf("getting %s: %w", r, err)
	}
	since := func(o client.Object) string { return o.GetAnnotations()[v1alpha1.ReplicasSetAtAnnotation] }
	return object.GetUID() == r.GetUID() && since(object) == since(r.API()) && New(object).Replicas() == r.Replicas(), nil
}

// Unusable returns why no Machines can be had from a resource; empty if they can.
func Unusable(ctx context.Context, clusters *operator.Clusters, resource *Resource) (string, error) {
	return resource.kind.unusable(ctx, clusters, resource)
}

// ReplicasLoweredAt returns when replicas were lowered because the MachineSet was blocked; false if
// they were last changed for another reason.
func ReplicasLoweredAt(resource *Resource) (time.Time, bool) {
	return timestamp.Of(resource, v1alpha1.ReplicasLoweredAtAnnotation)
}

// ReplicasSetAt returns when replicas were last set.
func ReplicasSetAt(resource *Resource) time.Time {
	if at, known := timestamp.Of(resource, v1alpha1.ReplicasSetAtAnnotation); known {
		return at
	}
	return resource.GetCreationTimestamp().Time // they were never set, or a user has edited the time
}
