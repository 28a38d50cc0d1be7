// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// Fields by which objects can be listed from the caches.
const (
	// NodeClaimResourceField is the scalable resource of a NodeClaim.
	NodeClaimResourceField = "metadata.annotations.scalable-resource"
	// NodeClaimProviderIDField is the provider ID of a NodeClaim; core uses it too.
	NodeClaimProviderIDField = "status.providerID"
	// NodeClaimTemplateField is the template of a NodeClaim; core uses it too.
	NodeClaimTemplateField = "spec.nodeClassRef.name"
	// ResourceField is the scalable resource of a MachineSet or Machine.
	ResourceField = "metadata.labels.scalable-resource"
	// MachineClaimField is the UID of the NodeClaim that a Machine serves.
	MachineClaimField = "metadata.labels.node-claim-uid"
	// MachineProviderIDField is the provider ID of a Machine.
	MachineProviderIDField = "spec.providerID"
	// TopologyEntryField is the entry of a Cluster's topology that a MachineDeployment was created from.
	TopologyEntryField = "metadata.labels.topology-entry"
)

type field struct {
	object client.Object
	name   string
	value  func(client.Object) string
}

// coreFields are the fields by which Karpenter's controllers list objects (karpenter:
// pkg/operator/operator.go, setupIndexers).
var coreFields = []field{
	{&corev1.Pod{}, "spec.nodeName", func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName }},
	{&corev1.Node{}, "spec.providerID", func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID }},
	{&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) string { return o.(*storagev1.VolumeAttachment).Spec.NodeName }},
	{&karpv1.NodeClaim{}, NodeClaimProviderIDField, func(o client.Object) string { return o.(*karpv1.NodeClaim).Status.ProviderID }},
	{&karpv1.NodeClaim{}, "spec.nodeClassRef.group", func(o client.Object) string { return nodeClassOf(o).Group }},
	{&karpv1.NodeClaim{}, "spec.nodeClassRef.kind", func(o client.Object) string { return nodeClassOf(o).Kind }},
	{&karpv1.NodeClaim{}, NodeClaimTemplateField, func(o client.Object) string { return nodeClassOf(o).Name }},
	{&karpv1.NodePool{}, "spec.template.spec.nodeClassRef.group", func(o client.Object) string { return nodeClassOf(o).Group }},
	{&karpv1.NodePool{}, "spec.template.spec.nodeClassRef.kind", func(o client.Object) string { return nodeClassOf(o).Kind }},
	{&karpv1.NodePool{}, "spec.template.spec.nodeClassRef.name", func(o client.Object) string { return nodeClassOf(o).Name }},
}

var workloadFields = []field{
	{&karpv1.NodeClaim{}, NodeClaimResourceField, func(o client.Object) string { return o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation] }},
}

var managementFields = []field{
	{&clusterv1.Machine{}, ResourceField, ResourceOf},
	{&clusterv1.MachineSet{}, ResourceField, ResourceOf},
	{&clusterv1.Machine{}, MachineClaimField, func(o client.Object) string { return string(lifecycle.ClaimUID(o)) }},
	{&clusterv1.Machine{}, MachineProviderIDField, func(o client.Object) string { return o.(*clusterv1.Machine).Spec.ProviderID }},
	{&clusterv1.MachineDeployment{}, TopologyEntryField, func(o client.Object) string { return pattern.Entry(o.(*clusterv1.MachineDeployment)) }},
}

// ResourceOf returns the name of the scalable resource of a MachineSet or Machine, of either
// kind; empty if it has none.
func ResourceOf(o client.Object) string {
	return cmp.Or(o.GetLabels()[clusterv1.MachineDeploymentNameLabel], o.GetLabels()[clusterv1.MachinePoolNameLabel])
}

// IndexWorkload adds the fields to the cache of the workload cluster.
func IndexWorkload(ctx context.Context, indexer client.FieldIndexer) error {
	return index(ctx, indexer, slices.Concat(coreFields, workloadFields)...)
}

// IndexNodeClaims adds the fields of NodeClaims to a cache of the workload cluster that needs no others.
func IndexNodeClaims(ctx context.Context, indexer client.FieldIndexer) error {
	return index(ctx, indexer, lo.Filter(slices.Concat(coreFields, workloadFields), func(f field, _ int) bool {
		_, is := f.object.(*karpv1.NodeClaim)
		return is
	})...)
}

func index(ctx context.Context, indexer client.FieldIndexer, fields ...field) error {
	for _, f := range fields {
		// Core also lists by empty values, so they are indexed, too.
		if err := indexer.IndexField(ctx, f.object, f.name, func(o client.Object) []string { return []string{f.value(o)} }); err != nil {
			return fmt.Errorf("indexing %s of %T (are all CRDs installed?): %w", f.name, f.object, err)
		}
	}
	return nil
}

// nodeClassOf returns the nodeClassRef of a NodeClaim or NodePool; the zero value if it is
// not set, which the API server does not allow.
func nodeClassOf(o client.Object) karpv1.NodeClassReference {
	var ref *karpv1.NodeClassReference
	switch object := o.(type) {
	case *karpv1.NodeClaim:
		ref = object.Spec.NodeClassRef
	case *karpv1.NodePool:
		ref = object.Spec.Template.Spec.NodeClassRef
	}
	if ref == nil {
		return karpv1.NodeClassReference{}
	}
	return *ref
}
