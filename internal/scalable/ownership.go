// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// GeneratedLabels returns the labels that identify the objects that are generated for a
// template of a Cluster. The name of the template alone is not sufficient, because several
// Clusters can share a namespace and have templates of the same name.
func GeneratedLabels(cluster types.NamespacedName, template string) map[string]string {
	return map[string]string{clusterv1.ClusterNameLabel: cluster.Name, v1alpha1.TemplateLabel: template}
}

// TemplateOf returns the name of the template of a Cluster that an object was generated
// for. It is empty if the object was not generated, or belongs to another Cluster.
func TemplateOf(object metav1.Object, cluster types.NamespacedName) string {
	labels := object.GetLabels()
	if labels[clusterv1.ClusterNameLabel] != cluster.Name {
		return ""
	}
	return labels[v1alpha1.TemplateLabel]
}

// Create creates a generated object and reports whether it did. An object of that name
// that exists and was generated for the same template of the served Cluster has the same
// content, because the name ends in a hash of it. Any other object of that name belongs
// to another Cluster or to a user: it is left alone, and the error, which is an
// AlreadyExists error, names it.
func Create(ctx context.Context, clusters *operator.Clusters, object client.Object, options ...client.CreateOption) (bool, error) {
	kind, err := apiutil.GVKForObject(object, clusters.Management.GetClient().Scheme())
	if err != nil {
		return false, fmt.Errorf("creating %s: %w", client.ObjectKeyFromObject(object), err)
	}
	err = clusters.Management.GetClient().Create(ctx, object, options...)
	if err == nil {
		return true, nil
	}
	name := fmt.Sprintf("%s %s", kind.Kind, client.ObjectKeyFromObject(object))
	if !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("creating %s: %w", name, err)
	}
	// The cache can be behind, and holds no MachineDeployments of other Clusters.
	existing := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	existing.GetObjectKind().SetGroupVersionKind(kind)
	if err := clusters.Management.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(object), existing); err != nil {
		return false, fmt.Errorf("getting %s, which already exists: %w", name, err)
	}
	if template := TemplateOf(object, clusters.Cluster); TemplateOf(existing, clusters.Cluster) != template {
		return false, fmt.Errorf("%s exists, but was not generated for KarpenterMachineTemplate %s of Cluster %s: delete or rename it: %w",
			name, template, clusters.Cluster, err)
	}
	return false, nil
}
