// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// view is objects by kind and name. They are shared, and never modified.
type view map[string]map[string]client.Object

// get copies an object from the view.
func (v view) get(key client.ObjectKey, into client.Object) error {
	kind := kindOf(into)
	object, found := v[kind][key.Name]
	if !found || object.GetNamespace() != key.Namespace {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	assign(into, object)
	return nil
}

// list copies the matching objects from the view, by name. Without indexes it supports no field
// selectors, like an API server.
func (v view) list(into client.ObjectList, indexes map[string]index, options ...client.ListOption) error {
	given := client.ListOptions{}
	given.ApplyOptions(options)
	kind := strings.TrimSuffix(kindOf(into), "List")
	var found []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(v[kind])) {
		object := v[kind][name]
		if given.Namespace != "" && object.GetNamespace() != given.Namespace {
			continue
		}
		if given.LabelSelector != nil && !given.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if given.FieldSelector != nil {
			matches, err := matchesFields(kind, object, given.FieldSelector, indexes)
			if err != nil {
				return err
			}
			if !matches {
				continue
			}
		}
		found = append(found, object.DeepCopyObject())
	}
	return meta.SetList(into, found)
}

func matchesFields(kind string, object client.Object, selector fields.Selector, indexes map[string]index) (bool, error) {
	for _, requirement := range selector.Requirements() {
		index, indexed := indexes[kind+" "+requirement.Field]
		if !indexed {
			return false, fmt.Errorf("field %s of %s cannot be selected", requirement.Field, kind)
		}
		if index(object) != requirement.Value {
			return false, nil
		}
	}
	return true, nil
}

// index returns the value by which an object is found.
type index func(client.Object) string

// cacheIndexes are the indexes of internal/clients/indexes.go that are used here.
var cacheIndexes = map[string]index{
	"Pod spec.nodeName":           func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName },
	"Node spec.providerID":        func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID },
	"NodeClaim status.providerID": func(o client.Object) string { return o.(*karpv1.NodeClaim).Status.ProviderID },
	"NodeClaim spec.nodeClassRef.name": func(o client.Object) string {
		return o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name
	},
	"NodeClaim metadata.annotations.scalable-resource": func(o client.Object) string {
		return o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation]
	},
	"Machine metadata.labels.scalable-resource":    clients.ResourceOf,
	"MachineSet metadata.labels.scalable-resource": clients.ResourceOf,
	"Machine metadata.labels.node-claim-uid":       func(o client.Object) string { return o.GetLabels()[v1alpha1.NodeClaimUIDLabel] },
	"Machine spec.providerID":                      func(o client.Object) string { return o.(*clusterv1.Machine).Spec.ProviderID },
}

func deploymentOf(o client.Object) string { return o.GetLabels()[clusterv1.MachineDeploymentNameLabel] }
