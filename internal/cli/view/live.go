// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/rights"
)

// MachineSets returns the MachineSets of the Cluster.
func (v *View) MachineSets(ctx context.Context) ([]clusterv1.MachineSet, error) {
	list := &clusterv1.MachineSetList{}
	if err := fill(ctx, v.clusters.Management, list, client.InNamespace(v.Served().Namespace)); err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	return byAge(lo.Filter(list.Items, func(set clusterv1.MachineSet, _ int) bool { return set.Spec.ClusterName == v.Served().Name })), nil
}

// Object returns the infrastructure or bootstrap object of a Machine, or a base template. It is shared with the cache and must not be
// modified.
func (v *View) Object(ctx context.Context, ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
	if v.kindsUnknown != nil {
		return nil, v.kindsUnknown
	}
	read := func(ctx context.Context) (*unstructured.Unstructured, error) {
		return reference.Shared(ctx, v.clusters.Management.GetClient(), ref, v.Served().Namespace)
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	object, err := read(soon)
	if err == nil || soon.Err() == nil || ctx.Err() != nil || errors.As(err, &reference.Unlisted{}) {
		return object, err
	}
	// The cache never has the CustomResourceDefinitions if the user may not list them.
	if err := v.clusters.Management.GetAPIReader().List(ctx, reference.CRDs(), client.Limit(1)); err != nil {
		v.kindsUnknown = fmt.Errorf("management cluster: %w", err)
		return nil, v.kindsUnknown
	}
	return read(ctx)
}

// EventsIn returns the events in a namespace of the workload or of the management cluster.
func (v *View) EventsIn(ctx context.Context, workload bool, namespace string) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	if err := v.clusterOf(workload).GetAPIReader().List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("%s: events in namespace %s: %w", nameOf(workload), namespace, err)
	}
	return list.Items, nil
}

func (v *View) clusterOf(workload bool) cluster.Cluster {
	return lo.Ternary(workload, v.clusters.Workload, v.clusters.Management)
}

// nameOf returns the name of a cluster for messages.
func nameOf(workload bool) string {
	return lo.Ternary(workload, "workload cluster", "management cluster")
}

// Allows returns a function that reads from the API server of a cluster whether a user has a right.
func (v *View) Allows(workload bool, user rights.User) func(context.Context, *authorizationv1.ResourceAttributes) (bool, error) {
	writer := v.clusterOf(workload).GetClient()
	return func(ctx context.Context, asked *authorizationv1.ResourceAttributes) (bool, error) {
		// The API server stores nothing.
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: asked, User: user.Name, Groups: user.Groups}}
		err := writer.Create(ctx, review)
		return review.Status.Allowed, err
	}
}

// Log returns the end of the log of the operator in a Pod, at most so many bytes, from the first full line. previous is for the
// container before the last restart.
func (v *View) Log(ctx context.Context, operator *Operator, pod *corev1.Pod, previous bool, most int) ([]byte, error) {
	clients, err := kubernetes.NewForConfig(operator.in.GetConfig())
	if err != nil {
		return nil, err
	}
	stream, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: Container(pod).Name, Previous: previous}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	content, err := end(stream, most)
	return content, errors.Join(err, stream.Close())
}
