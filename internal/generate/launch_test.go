// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// The annotations of a launch replace those of the launch before. Other annotations of the
// claim stay.
func TestLaunchAnnotates(t *testing.T) {
	before := map[string]string{
		"user": "own", v1alpha1.ScalableResourceAnnotation: "old", v1alpha1.TemplateHashAnnotation: "old",
		v1alpha1.TemplateRevisionAnnotation: "old", v1alpha1.PriceAnnotation: "0.1",
		v1alpha1.MachineHashesAnnotation: "version=old",
	}
	// An adopted resource has no template hash.
	launch := &Launch{annotations: map[string]string{
		v1alpha1.ScalableResourceAnnotation: "existing", v1alpha1.TemplateRevisionAnnotation: "new", v1alpha1.PriceAnnotation: "0.2",
	}}
	want := map[string]string{
		"user": "own", v1alpha1.ScalableResourceAnnotation: "existing", v1alpha1.TemplateRevisionAnnotation: "new", v1alpha1.PriceAnnotation: "0.2",
	}
	if diff := cmp.Diff(want, launch.Annotate(before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(launch.annotations, launch.Annotate(nil)); diff != "" {
		t.Errorf("a claim without annotations (-want +got):\n%s", diff)
	}
	if before[v1alpha1.PriceAnnotation] != "0.1" {
		t.Error("the given annotations were changed")
	}
}

// Only what cannot change without the template or what it refers to makes an offering unlaunchable. Otherwise the claim
// waits.
func TestLaunchesThatFail(t *testing.T) {
	const group, kind = "infrastructure.cluster.x-k8s.io", "AWSMachineTemplate"
	failed := errors.New("etcdserver: request timed out")
	for name, tc := range map[string]struct {
		change         func(*v1alpha1.KarpenterMachineTemplate)
		infrastructure string // that the instance type names
		key            catalog.Key
		launched       bool
		unlaunchable   bool
	}{
		"it can be launched": {key: fixture.Spot, launched: true},
		"it is not offered":  {key: catalog.Key{InstanceType: "other"}, unlaunchable: true},
		"the template names a Secret of others": {key: fixture.Spot, change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.Template.Spec.Bootstrap.DataSecretName = new("prod-kubeconfig")
		}, unlaunchable: true},
		"a patch cannot be applied": {key: fixture.Spot, change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.Patches = []v1alpha1.Patch{fixture.Patch("/spec/none/x", "x")}
		}, unlaunchable: true},
		"the base template cannot be read": {key: fixture.Spot, change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.InfrastructureRef.Name = "unreadable" }},
		"that of its type cannot be read":  {key: fixture.Spot, infrastructure: "unreadable"},
		"that of its type does not exist":  {key: fixture.Spot, infrastructure: "missing", unlaunchable: true},
	} {
		t.Run(name, func(t *testing.T) {
			template := fixture.Template()
			template.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("bootstrap")}
			if tc.change != nil {
				tc.change(template)
			}
			listed := fixture.Catalog()
			if tc.infrastructure != "" {
				listed.Spec.InstanceTypes[0].InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: tc.infrastructure}
			}
			crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "awsmachinetemplates."+group, nil)
			crd.SetLabels(map[string]string{clusterv1.GroupVersion.String(): "v1beta2"})
			clusters := fixture.Clusters(crd, template, listed, object(group+"/v1beta2", kind, fixture.Served.Namespace, "workers", map[string]any{"template": map[string]any{"spec": map[string]any{}}}))
			both := fixture.Cluster{Client: interceptor.NewClient(clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
					if key.Name == "unreadable" {
						return failed
					}
					return c.Get(ctx, key, into, options...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, is := list.(*karpv1.NodeClaimList); is {
						return nil // the fake client has no index of their templates
					}
					return c.List(ctx, list, options...)
				},
			})}
			clusters.Workload, clusters.Management = both, both
			launch, err := LaunchOf(t.Context(), clusters, catalog.New(clusters), template, tc.key)
			if unlaunchable := errors.As(err, &UnlaunchableError{}); unlaunchable != tc.unlaunchable || (err == nil) != tc.launched {
				t.Fatalf("got %v, want that it is unlaunchable: %t", err, tc.unlaunchable)
			}
			if !tc.launched {
				return
			}
			want := map[string]string{
				v1alpha1.ScalableResourceAnnotation: launch.Generated.Resource.GetName(), v1alpha1.TemplateHashAnnotation: launch.Generated.Resource.GetLabels()[v1alpha1.TemplateHashLabel],
				v1alpha1.TemplateRevisionAnnotation: catalog.RevisionOf(template), v1alpha1.PriceAnnotation: "0.035",
				v1alpha1.MachineHashesAnnotation: launch.Generated.Hashes.String(),
			}
			if diff := cmp.Diff(want, launch.Annotate(nil)); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
