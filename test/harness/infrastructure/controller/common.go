// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conditioned is an object with conditions.
type conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

func setCondition(obj conditioned, now time.Time, condition metav1.Condition) {
	conditions := obj.GetConditions()
	condition.ObservedGeneration = obj.GetGeneration()
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&conditions, condition)
	obj.SetConditions(conditions)
}

// setPaused sets the Paused condition; the message is the reason, and empty if the object is not paused.
func setPaused(obj conditioned, message string, now time.Time) {
	condition := metav1.Condition{Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotPausedReason}
	if message != "" {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, clusterv1.PausedReason, message
	}
	setCondition(obj, now, condition)
}

// pausedBy returns why an object is paused; empty if it is not. The cluster may be nil.
func pausedBy(cluster *clusterv1.Cluster, obj client.Object) string {
	switch {
	case cluster != nil && ptr.Deref(cluster.Spec.Paused, false):
		return "Cluster spec.paused is set to true"
	case annotations.HasPaused(obj):
		return "The object has the " + clusterv1.PausedAnnotation + " annotation"
	default:
		return ""
	}
}

// clusterOf returns the Cluster in the label of an object; nil if it has no label or no such Cluster exists.
func clusterOf(ctx context.Context, c client.Reader, obj client.Object) (*clusterv1.Cluster, error) {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil, nil
	}
	cluster := &clusterv1.Cluster{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return cluster, nil
}

// ownerMachineOf returns the Machine that controls an object; nil if none exists yet, or no longer.
func ownerMachineOf(ctx context.Context, c client.Reader, obj client.Object) (*clusterv1.Machine, error) {
	machine := &clusterv1.Machine{}
	if found, err := getController(ctx, c, obj, "Machine", machine); !found {
		return nil, err
	}
	return machine, nil
}

// ownerMachinePoolOf returns the MachinePool that controls an object; nil if none exists yet, or no longer.
func ownerMachinePoolOf(ctx context.Context, c client.Reader, obj client.Object) (*clusterv1.MachinePool, error) {
	pool := &clusterv1.MachinePool{}
	if found, err := getController(ctx, c, obj, "MachinePool", pool); !found {
		return nil, err
	}
	return pool, nil
}

// getController reads the object of Cluster API that controls another, if it is of the given kind.
func getController(ctx context.Context, c client.Reader, obj client.Object, kind string, into client.Object) (found bool, err error) {
	ref := metav1.GetControllerOf(obj)
	if ref == nil || ref.Kind != kind {
		return false, nil
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != clusterv1.GroupVersion.Group {
		return false, nil //nolint:nilerr // A reference that cannot be read is not one to an object of Cluster API.
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: ref.Name}, into); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return into.GetUID() == ref.UID, nil
}

// patchStatus writes the status if it changed.
func patchStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return c.Status().Patch(ctx, after, locked(before))
}

// locked returns a patch that fails when the object has changed since it was read: a patch of a list replaces all of
// it, and a state from an outdated cache must not overwrite a newer one.
func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// microTime returns a time with the precision of the API.
func microTime(t time.Time) metav1.MicroTime {
	return metav1.NewMicroTime(t.Truncate(time.Microsecond))
}
