// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Copies returns the objects of one kind that were generated from base templates, for any template of a
// Cluster. It omits the objects that Cluster API or a provider has created for a Machine, which have
// the labels of their Machine.
func Copies(ctx context.Context, management client.Reader, kind schema.GroupVersionKind, cluster types.NamespacedName, options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	options = append(options, client.InNamespace(cluster.Namespace), client.MatchingLabelsSelector{Selector: copiesOf(cluster)})
	if err := management.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing the generated objects of kind %s: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// copiesOf selects what was generated from base templates.
func copiesOf(cluster types.NamespacedName) labels.Selector {
	requirement := func(key string, operator selection.Operator, values ...string) labels.Requirement {
		return *lo.Must(labels.NewRequirement(key, operator, values))
	}
	return labels.NewSelector().Add(
		requirement(clusterv1.ClusterNameLabel, selection.Equals, cluster.Name),
		requirement(v1alpha1.TemplateLabel, selection.Exists),
		requirement(clusterv1.MachineDeploymentNameLabel, selection.DoesNotExist),
		requirement(clusterv1.MachineSetNameLabel, selection.DoesNotExist),
		requirement(clusterv1.MachinePoolNameLabel, selection.DoesNotExist),
	)
}
