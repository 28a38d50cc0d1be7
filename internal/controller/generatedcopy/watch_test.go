// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// watchedKind is a kind of templates of a provider.
var watchedKind = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "SharedMachineTemplate"}

// refusing is a controller that cannot watch one kind.
type refusing struct {
	controller.Controller

	kind string // empty for none
	err  error
}

func (r refusing) Watch(added source.Source) error {
	if r.kind != "" && strings.HasSuffix(fmt.Sprint(added), " "+r.kind+"]") {
		return r.err
	}
	return nil
}

// definition returns the CustomResourceDefinition of a kind of a provider.
func definition(kind schema.GroupVersionKind) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(reference.CRD().GroupVersionKind())
	crd.SetName(contract.CalculateCRDName(kind.Group, kind.Kind))
	crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": kind.Version})
	return crd
}

// The kinds of what catalogs refer to are watched, like those of the template itself. So are the kinds of what is
// generated from them, and those that only resources refer to.
func TestWatchesKinds(t *testing.T) {
	ofTemplate := func(kind v1alpha1.ScalableResourceKind) *v1alpha1.KarpenterMachineTemplate {
		template := fixture.Template()
		template.Spec.ScalableResource.Kind = kind
		template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: "shared"}}
		return template
	}
	made := watchedKind
	made.Kind = "SharedMachine"
	listed := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: watchedKind.Group, Kind: watchedKind.Kind, Name: "x"}
	listed.Spec.InstanceTypes = []v1alpha1.InstanceType{{Name: "m5", InfrastructureRef: &ref}}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "deployment"}}
	deployment.Spec.Template.Spec.InfrastructureRef = ref
	for name, tc := range map[string]struct {
		template  *v1alpha1.KarpenterMachineTemplate
		resources []*scalable.Resource
		fails     string // what cannot be read
		refused   string // the kind that cannot be watched
		want      []schema.GroupVersionKind
	}{
		"of a catalog":               {template: ofTemplate(v1alpha1.ScalableResourceKindMachineDeployment), want: []schema.GroupVersionKind{watchedKind}},
		"of a catalog, for pools":    {template: ofTemplate(v1alpha1.ScalableResourceKindMachinePool), want: []schema.GroupVersionKind{watchedKind, made}},
		"of a resource":              {resources: []*scalable.Resource{scalable.New(deployment)}, want: []schema.GroupVersionKind{watchedKind}},
		"catalogs cannot be read":    {template: ofTemplate(v1alpha1.ScalableResourceKindMachineDeployment), fails: "catalogs"},
		"a kind cannot be read":      {template: ofTemplate(v1alpha1.ScalableResourceKindMachineDeployment), fails: "kinds"},
		"it cannot be watched":       {template: ofTemplate(v1alpha1.ScalableResourceKindMachinePool), refused: watchedKind.Kind, want: []schema.GroupVersionKind{made}},
		"what is generated, neither": {template: ofTemplate(v1alpha1.ScalableResourceKindMachinePool), refused: made.Kind, want: []schema.GroupVersionKind{watchedKind}},
		"a resource's kind, neither": {resources: []*scalable.Resource{scalable.New(deployment)}, fails: "kinds"},
		"a resource's, nor watched":  {resources: []*scalable.Resource{scalable.New(deployment)}, refused: watchedKind.Kind},
	} {
		t.Run(name, func(t *testing.T) {
			fails := errors.New("fails")
			r := NewReconciler(fixture.Clusters(definition(watchedKind), listed), nil, clocktesting.NewFakeClock(time.Now()))
			failing := interceptor.NewClient(r.clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if tc.fails == "kinds" {
						return fails
					}
					return c.Get(ctx, key, object, options...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if tc.fails == "catalogs" {
						return fails
					}
					return c.List(ctx, list, options...)
				},
			})
			r.clusters.Management, r.clusters.Workload = fixture.Cluster{Client: failing}, fixture.Cluster{Client: failing}
			r.kinds = enqueue.NewKinds(refusing{kind: tc.refused, err: fails}, nil)
			want := tc.fails != "" || tc.refused != ""
			if err := r.watch(t.Context(), tc.template, tc.resources); errors.Is(err, fails) != want {
				t.Errorf("got %v, want an error: %t", err, want)
			}
			byName := cmpopts.SortSlices(func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
			if diff := gocmp.Diff(tc.want, r.kinds.List(), byName, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("watched kinds (-want +got):\n%s", diff)
			}
		})
	}
}
