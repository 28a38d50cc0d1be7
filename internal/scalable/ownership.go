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
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
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

// Differs returns an error if an existing object is not the generated one of the same kind and
// name. It can belong to another Cluster, to a user, or to another offering, since names have
// only a part of a hash.
func Differs(kind string, existing, generated client.Object, cluster types.NamespacedName) error {
	name := fmt.Sprintf("%s %s", kind, client.ObjectKeyFromObject(generated))
	if template := TemplateOf(generated, cluster); TemplateOf(existing, cluster) != template {
		return fmt.Errorf("%s exists, but was not generated for KarpenterMachineTemplate %s of Cluster %s: delete or rename it", name, template, cluster)
	}
	const label = v1alpha1.TemplateHashLabel
	if is, want := existing.GetLabels()[label], generated.GetLabels()[label]; is != want {
		return fmt.Errorf("%s exists, but was generated from something else, because its label %s is %q and not %q: delete it, or use a KarpenterMachineTemplate of another name",
			name, label, is, want)
	}
	return nil
}

// Create creates a generated object and reports whether it did. An existing object of that name
// has the same content unless it Differs. Then it is left alone, and the error is an
// AlreadyExists error.
func Create(ctx context.Context, clusters *clients.Clusters, object client.Object, options ...client.CreateOption) (bool, error) {
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
	if differs := Differs(kind.Kind, existing, object, clusters.Cluster); differs != nil {
		return false, fmt.Errorf("%w: %w", differs, err)
	}
	return false, nil
}
