// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Each reference of a template and its catalogs is found once, and so are all kinds whose objects decide what
// the template may refer to.
func TestReferences(t *testing.T) {
	const group = "infrastructure.cluster.x-k8s.io"
	infrastructure := func(kind, name string) *clusterv1.ContractVersionedObjectReference {
		return &clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: name}
	}
	template := fixture.Template()
	bootstrap := template.Spec.Template.Spec.Bootstrap.ConfigRef
	own := infrastructure("OwnTemplate", "own")
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: "missing"}, {Name: "first"}, {Name: "shared"}}
	template.Spec.Discovery = &v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: group, Kind: "FoundTemplate"}}
	catalog := func(name string, types ...v1alpha1.InstanceType) client.Object {
		listed := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}}
		listed.Spec.InstanceTypes = types
		return listed
	}
	clusters := fixture.Clusters(
		catalog("other", v1alpha1.InstanceType{Name: "x", InfrastructureRef: infrastructure("OtherTemplate", "other")}),
		catalog("first", v1alpha1.InstanceType{Name: "a"}, v1alpha1.InstanceType{Name: "b", InfrastructureRef: own}, v1alpha1.InstanceType{Name: "c", InfrastructureRef: own}),
		catalog("shared", v1alpha1.InstanceType{Name: "d"}, v1alpha1.InstanceType{Name: "e", InfrastructureRef: own},
			v1alpha1.InstanceType{Name: "f", InfrastructureRef: infrastructure("SharedTemplate", "shared")}),
	)
	got, err := References(t.Context(), clusters, template)
	if err != nil {
		t.Fatal(err)
	}
	want := []Reference{
		{bootstrap, "spec.template.spec.bootstrap.configRef", v1alpha1.PatchTargetBootstrap, false},
		{*infrastructure("AWSMachineTemplate", "workers"), "spec.template.spec.infrastructureRef", v1alpha1.PatchTargetInfrastructure, false},
		{*own, "InstanceTypeCatalog first: spec.instanceTypes[1].infrastructureRef", v1alpha1.PatchTargetInfrastructure, true},
		{*infrastructure("SharedTemplate", "shared"), "InstanceTypeCatalog shared: spec.instanceTypes[2].infrastructureRef", v1alpha1.PatchTargetInfrastructure, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	kinds, err := kindsOf(t.Context(), clusters, template)
	if err != nil {
		t.Fatal(err)
	}
	wantKinds := []schema.GroupKind{{Group: bootstrap.APIGroup, Kind: bootstrap.Kind}}
	for _, kind := range []string{"AWSMachineTemplate", "OwnTemplate", "SharedTemplate", "FoundTemplate"} {
		wantKinds = append(wantKinds, schema.GroupKind{Group: group, Kind: kind})
	}
	if diff := cmp.Diff(wantKinds, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// What users of the management cluster have set up for the Cluster decides what templates may refer to. What the operator
// generated, what belongs to other Clusters and what is in other namespaces shows nothing.
func TestReadAllowed(t *testing.T) {
	const group = "infrastructure.cluster.x-k8s.io"
	metadata := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: name, Labels: labels}
	}
	machine := func(cluster, base, secret string) clusterv1.MachineTemplateSpec {
		return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
			ClusterName: cluster, Bootstrap: clusterv1.Bootstrap{DataSecretName: &secret},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: "AWSMachineTemplate", Name: base},
		}}
	}
	deployment := func(metadata metav1.ObjectMeta, spec clusterv1.MachineTemplateSpec) client.Object {
		return &clusterv1.MachineDeployment{ObjectMeta: metadata, Spec: clusterv1.MachineDeploymentSpec{Template: spec}}
	}
	base := func(name, secret string, labels map[string]string) client.Object {
		object := object(group+"/v1beta2", "AWSMachineTemplate", fixture.Served.Namespace, name, map[string]any{"credentials": map[string]any{"secretRef": map[string]any{"name": secret}}})
		object.SetLabels(labels)
		return object
	}
	secret := func(namespace, name, value string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"example.com/use": value}}}
	}
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "awsmachinetemplates."+group, nil)
	crd.SetLabels(map[string]string{clusterv1.GroupVersion.String(): "v1beta2"})
	elsewhere := metadata("elsewhere", nil)
	elsewhere.Namespace = "other"
	clusters := fixture.Clusters(crd,
		deployment(metadata("own", nil), machine(fixture.Served.Name, "referred", "of-deployment")),
		deployment(metadata("generated", map[string]string{v1alpha1.TemplateLabel: "general"}), machine(fixture.Served.Name, "generated", "of-generated")),
		deployment(metadata("foreign", nil), machine("other", "foreign", "of-foreign")),
		deployment(elsewhere, machine(fixture.Served.Name, "elsewhere", "of-elsewhere")),
		&clusterv1.MachinePool{ObjectMeta: metadata("pool", nil), Spec: clusterv1.MachinePoolSpec{Template: machine(fixture.Served.Name, "missing", "of-pool")}},
		base("referred", "of-referred", nil),
		base("labelled", "of-labelled", map[string]string{clusterv1.ClusterNameLabel: fixture.Served.Name}),
		base("unknown", "of-unknown", nil),
		base("others", "of-others", map[string]string{clusterv1.ClusterNameLabel: "other"}),
		secret(fixture.Served.Namespace, "shared", "workers"), secret(fixture.Served.Namespace, "private", "other"), secret("other", "elsewhere", "workers"),
	)
	clusters.Allowed = lo.Must(tenancy.Parse("label:example.com/use=workers", "", ""))
	allowed, err := ReadAllowed(t.Context(), clusters, fixture.Template())
	if err != nil {
		t.Fatal(err)
	}
	templates := lo.Map(allowed.Own.Templates.UnsortedList(), func(t tenancy.Template, _ int) string { return t.Kind.String() + " " + t.Name })
	slices.Sort(templates)
	got := [][]string{templates, sets.List(allowed.Own.Secrets), sets.List(allowed.Own.Labelled)}
	want := [][]string{
		{"AWSMachineTemplate." + group + " missing", "AWSMachineTemplate." + group + " referred"},
		{"of-deployment", "of-labelled", "of-pool", "of-referred"},
		{"shared"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("templates, Secrets and Secrets by their label (-want +got):\n%s", diff)
	}
}

// Secrets are listed only if the rules have a label: otherwise the operator needs no right to that.
func TestNoSecretsAreListedWithoutALabel(t *testing.T) {
	clusters := fixture.Clusters(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "private"}})
	clusters.Management = fixture.Cluster{Client: interceptor.NewClient(clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if list.GetObjectKind().GroupVersionKind().Kind == "SecretList" || list.GetObjectKind().GroupVersionKind().Kind == "Secret" {
				return errors.New("forbidden")
			}
			return c.List(ctx, list, options...)
		},
	})}
	allowed, err := ReadAllowed(t.Context(), clusters, fixture.Template())
	if err != nil || len(allowed.Own.Labelled) > 0 {
		t.Errorf("got %v and %v, want no Secret", allowed.Own.Labelled, err)
	}
}

// A template may have the metadata of the MachineDeployment that it follows, as the management cluster has it now.
func TestReadMetadataOfThePattern(t *testing.T) {
	followed := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "followed"}}
	followed.Spec.Template.Annotations = map[string]string{"note": "x"}
	other := followed.DeepCopy()
	other.Name, other.Spec.Template.Annotations = "a", nil
	template := fixture.Template()
	template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "followed"}
	allowed, err := ReadAllowed(t.Context(), fixture.Clusters(other, followed), template)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"note": "x"}, allowed.Pattern.Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Base templates of a kind that the API server does not list allow nothing, and conditions show it. After any other error,
// what is allowed is unknown.
func TestBaseTemplatesThatCannotBeRead(t *testing.T) {
	const group, kind = "infrastructure.cluster.x-k8s.io", "AWSMachineTemplate"
	failed := errors.New("etcdserver: request timed out")
	for name, tc := range map[string]struct{ list, get, want error }{
		"nothing":                     {},
		"the kind is not listed":      {list: reference.Unlisted{}},
		"another error of the list":   {list: failed, want: failed},
		"another error of one object": {get: failed, want: failed},
	} {
		t.Run(name, func(t *testing.T) {
			crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "awsmachinetemplates."+group, nil)
			crd.SetLabels(map[string]string{clusterv1.GroupVersion.String(): "v1beta2"})
			own := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "own"}}
			own.Spec.Template.Spec = clusterv1.MachineSpec{
				ClusterName: fixture.Served.Name, InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: "workers"},
			}
			clusters := fixture.Clusters(crd, own)
			clusters.Management = fixture.Cluster{Client: interceptor.NewClient(clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if tc.list != nil && list.GetObjectKind().GroupVersionKind().Kind == kind+"List" {
						return tc.list
					}
					return c.List(ctx, list, options...)
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
					if tc.get != nil && into.GetObjectKind().GroupVersionKind().Kind == kind {
						return tc.get
					}
					return c.Get(ctx, key, into, options...)
				},
			})}
			if _, err := ReadAllowed(t.Context(), clusters, fixture.Template()); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// Neither the infrastructure nor the bootstrap template can be one of another Cluster.
func TestBasesOfOtherClusters(t *testing.T) {
	for name, foreign := range map[string]*unstructured.Unstructured{"of machines": fixture.Infrastructure(), "of bootstrap data": fixture.Bootstrap()} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for plural, base := range map[string]*unstructured.Unstructured{"awsmachinetemplates": fixture.Infrastructure(), "otherconfigtemplates": fixture.Bootstrap()} {
				crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+base.GroupVersionKind().Group, nil)
				crd.SetLabels(map[string]string{clusterv1.GroupVersion.String(): "v1beta2"})
				if base.GetKind() == foreign.GetKind() {
					base.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "other"})
				}
				objects = append(objects, crd, base)
			}
			_, err := ReadBases(t.Context(), fixture.Clusters(objects...), fixture.Template())
			if want := foreign.GetKind() + " workers belongs to Cluster other"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
