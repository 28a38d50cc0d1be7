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
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
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
	// machines and ready are the numbers of Machines and ready Machines in its status.
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

// API returns the object itself, for clients.
func (r *Resource) API() client.Object { return r.Object.(client.Object) }

// Kind returns the kind of the resource.
func (r *Resource) Kind() Kind { return r.kind }

// Key returns the namespace and name.
func (r *Resource) Key() types.NamespacedName { return client.ObjectKeyFromObject(r.API()) }

// String returns the kind, namespace and name, for errors.
func (r *Resource) String() string { return fmt.Sprintf("%s %s", r.kind.Name(), r.Key()) }

// DeepCopy returns a copy.
func (r *Resource) DeepCopy() *Resource {
	return New(r.API().DeepCopyObject().(client.Object))
}

// Replicas returns the replicas of the spec; zero if they are not set.
func (r *Resource) Replicas() int32 { return lo.FromPtr(r.kind.fields(r.API()).replicas) }

// HasReplicas reports whether the replicas of the spec are set.
func (r *Resource) HasReplicas() bool { return r.kind.fields(r.API()).replicas != nil }

// SetReplicas sets the replicas of the spec.
func (r *Resource) SetReplicas(replicas int32, now time.Time) {
	if !r.HasReplicas() || r.Replicas() != replicas {
		r.kind.setReplicas(r.API(), replicas, now)
	}
}

// Machines returns the numbers of Machines and of ready Machines in the status.
func (r *Resource) Machines() (all, ready int32) {
	fields := r.kind.fields(r.API())
	return lo.FromPtr(fields.machines), lo.FromPtr(fields.ready)
}

// MachineTemplate returns the template of the resource's Machines.
func (r *Resource) MachineTemplate() *clusterv1.MachineTemplateSpec {
	return r.kind.fields(r.API()).template
}

// References returns the references of the resource.
func (r *Resource) References() []clusterv1.ContractVersionedObjectReference {
	spec := r.MachineTemplate().Spec
	return lo.Filter([]clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.Bootstrap.ConfigRef},
		func(ref clusterv1.ContractVersionedObjectReference, _ int) bool { return ref.IsDefined() })
}

// OwnerReference returns an owner reference to the resource, for the objects that it refers to.
func (r *Resource) OwnerReference() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: string(r.kind.Name()), Name: r.GetName(), UID: r.GetUID()}
}

// Conditions returns the object as a getter of its conditions.
func (r *Resource) Conditions() conditions.Getter { return r.Object.(conditions.Getter) }

// Get returns the scalable resource with a name from the cache; nil if there is none. If
// there is one of each kind, it returns the one that this operator has generated or adopted.
func Get(ctx context.Context, clusters *clients.Clusters, name string) (*Resource, error) {
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
		if isOfOther(clusters, resource.MachineTemplate().Spec.ClusterName) {
			continue
		}
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
func List(ctx context.Context, clusters *clients.Clusters, options ...client.ListOption) ([]*Resource, error) {
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
			if resource := New(item.(client.Object)); !isOfOther(clusters, resource.MachineTemplate().Spec.ClusterName) {
				resources = append(resources, resource)
			}
		}
	}
	return resources, nil
}

// IsCurrent reports whether the API server has the same replicas as the cache, set at the
// same time. It is called before a Machine is deleted, which cannot be undone: if the cache
// is behind, replicas can count the Machine again, or can have been lowered only now.
func (r *Resource) IsCurrent(ctx context.Context, clusters *clients.Clusters) (bool, error) {
	object, _ := r.kind.empty()
	if err := clusters.Management.GetAPIReader().Get(ctx, r.Key(), object); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil // nothing acts on replicas any more
		}
		return false, fmt.Errorf("getting %s: %w", r, err)
	}
	since := func(o client.Object) string { return o.GetAnnotations()[v1alpha1.ReplicasSetAtAnnotation] }
	return object.GetUID() == r.GetUID() && since(object) == since(r.API()) && New(object).Replicas() == r.Replicas(), nil
}

// Unusable returns why a resource cannot create Machines; empty if it can.
func Unusable(ctx context.Context, clusters *clients.Clusters, resource *Resource) (string, error) {
	return resource.kind.unusable(ctx, clusters, resource)
}

// ReplicasLoweredAt returns when replicas were lowered because the MachineSet was blocked;
// false if they were last changed for another reason.
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
