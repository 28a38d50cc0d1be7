// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

var (
	served   = types.NamespacedName{Namespace: "fleet", Name: "served"}
	neighbor = types.NamespacedName{Namespace: "fleet", Name: "neighbor"}
	copyKind = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "TestTemplate"}
)

func of(cluster types.NamespacedName, name string, labels map[string]string, annotations ...string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: cluster.Namespace, Name: name, Labels: lo.Assign(labels, map[string]string{clusterv1.ClusterNameLabel: cluster.Name}),
		Annotations: lo.SliceToMap(annotations, func(key string) (string, string) { return key, "" }),
	}
}

func copied(cluster types.NamespacedName, name string) client.Object {
	object := &metav1.PartialObjectMetadata{ObjectMeta: of(cluster, name, scalable.GeneratedLabels(cluster, "general"))}
	object.SetGroupVersionKind(copyKind)
	return object
}

func TestFind(t *testing.T) {
	if err := metav1.AddMetaToScheme(scheme.Scheme); err != nil { // only the fake client needs it
		t.Fatal(err)
	}
	generated := map[string]string{v1alpha1.TemplateLabel: "general"}
	ours := &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
	theirs := &karpv1.NodeClassReference{Group: "karpenter.example.com", Kind: "ExampleNodeClass", Name: "general"}
	pool := func(ref *karpv1.NodeClassReference) client.Object {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
		pool.Spec.Template.Spec.NodeClassRef = ref
		return pool
	}
	claim := func(ref *karpv1.NodeClassReference) client.Object {
		return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}, Spec: karpv1.NodeClaimSpec{NodeClassRef: ref}}
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		missing bool // the CRDs of Karpenter
		want    map[string][]string
	}{
		"nothing":                         {want: map[string][]string{}},
		"nothing, and no CRDs":            {missing: true, want: map[string][]string{}},
		"a NodePool":                      {objects: []client.Object{pool(ours)}, want: map[string][]string{"NodePools": {"pool"}}},
		"a NodePool of another provider":  {objects: []client.Object{pool(theirs)}, want: map[string][]string{}},
		"a NodeClaim":                     {objects: []client.Object{claim(ours)}, want: map[string][]string{"NodeClaims": {"claim"}}},
		"a NodeClaim of another provider": {objects: []client.Object{claim(theirs)}, want: map[string][]string{}},
		"a template":                      {objects: []client.Object{&v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}}, want: map[string][]string{"KarpenterMachineTemplates": {"general"}}},
		"scalable resources": {
			objects: []client.Object{&clusterv1.MachineDeployment{ObjectMeta: of(served, "d", generated)}, &clusterv1.MachinePool{ObjectMeta: of(served, "p", generated)}},
			want:    map[string][]string{"MachineDeployments and MachinePools": {"MachineDeployment fleet/d", "MachinePool fleet/p"}},
		},
		"resources of users, and of another Cluster": {
			objects: []client.Object{&clusterv1.MachineDeployment{ObjectMeta: of(served, "d", nil)}, &clusterv1.MachinePool{ObjectMeta: of(neighbor, "p", generated)}},
			want:    map[string][]string{},
		},
		"Machines": {
			objects: []client.Object{
				&clusterv1.Machine{ObjectMeta: of(served, "drain", nil, v1alpha1.DrainHookAnnotation)},
				&clusterv1.Machine{ObjectMeta: of(served, "linked", map[string]string{v1alpha1.NodeClaimUIDLabel: "c"})},
				&clusterv1.Machine{ObjectMeta: of(served, "terminate", nil, v1alpha1.TerminateHookAnnotation)},
				&clusterv1.Machine{ObjectMeta: of(served, "unmanaged", nil)},
				&clusterv1.Machine{ObjectMeta: of(neighbor, "neighbor", nil, v1alpha1.DrainHookAnnotation)},
			},
			want: map[string][]string{"Machines with links or hooks": {"fleet/drain", "fleet/linked", "fleet/terminate"}},
		},
		"copies": {
			objects: []client.Object{copied(served, "copy"), copied(neighbor, "neighbor")},
			want:    map[string][]string{"generated infrastructure and bootstrap objects": {"TestTemplate fleet/copy"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			crd := reference.CRD()
			crd.SetName("testtemplates." + copyKind.Group)
			crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": copyKind.Version})
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(copyKind, meta.RESTScopeNamespace)
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(append(tc.objects, crd)...).
				WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					switch list.(type) {
					case *karpv1.NodePoolList, *karpv1.NodeClaimList, *v1alpha1.KarpenterMachineTemplateList:
						if tc.missing {
							return &meta.NoKindMatchError{}
						}
					}
					return c.List(ctx, list, options...)
				}}).Build()
			findings, err := (&Finder{Workload: c, Management: c, Mapper: mapper, Cluster: served}).Find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := lo.SliceToMap(findings, func(f Finding) (string, []string) { return f.Kind, f.Names })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	for name, tc := range map[string]struct {
		findings []Finding
		want     string
		err      error
	}{
		"nothing": {want: "Nothing of the operator for Cluster fleet/served is left: it is safe to uninstall it.\n"},
		"many": {
			findings: []Finding{{Kind: "NodePools", Names: []string{"b", "a"}, Do: "Delete them."}, {Kind: "NodeClaims", Names: strings.Split("c1 c2 c3 c4 c5 c6 c7 c8 c9 d1 d2", " "), Do: "Wait."}},
			want: `If you uninstall the operator for Cluster fleet/served now, it leaves behind:

2 NodePools: a, b
  Delete them.

11 NodeClaims: c1, c2, c3, c4, c5, c6, c7, c8, c9, d1 and 1 more
  Wait.

`,
			err: ErrNotSafe,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := Print(&out, served, tc.findings); !errors.Is(err, tc.err) {
				t.Errorf("got %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
