// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// generateFrom returns the objects for an offering, generated from bases.
func generateFrom(t *testing.T, template *v1alpha1.KarpenterMachineTemplate, bases Bases, key catalog.Key, changes ...func(*v1alpha1.InstanceType)) *Generated {
	t.Helper()
	generated, err := tryToGenerate(template, bases, key, changes...)
	if err != nil {
		t.Fatal(err)
	}
	return generated
}

func tryToGenerate(template *v1alpha1.KarpenterMachineTemplate, bases Bases, key catalog.Key, changes ...func(*v1alpha1.InstanceType)) (*Generated, error) {
	generator, err := NewGenerator(fixture.Served, template, bases)
	if err != nil {
		return nil, err
	}
	types := typesOf(template, changes...)
	return generator.Generate(&types[0], types[0].Find(key.Zone, key.CapacityType))
}

func TestMachinePool(t *testing.T) {
	type spec = map[string]any
	for name, tc := range map[string]struct {
		kind, base         string
		patches            []v1alpha1.Patch
		want               spec
		labels             map[string]string // of the base's template
		wantKind, wantFrom string
	}{
		"from a template": {
			kind: "DockerMachinePoolTemplate", base: `{template: {spec: {template: {}}}}`,
			wantKind: "DockerMachinePool", want: spec{"template": spec{}},
		},
		"from a template with labels": {
			kind: "DockerMachinePoolTemplate", base: `{template: {metadata: {labels: {cost: a}}, spec: {template: {}}}}`,
			wantKind: "DockerMachinePool", want: spec{"template": spec{}}, labels: map[string]string{"cost": "a"},
		},
		"from a template with patches": {
			kind: "DockerMachinePoolTemplate", base: `{template: {spec: {template: {}}}}`,
			patches:  []v1alpha1.Patch{fixture.Patch("/spec/template/spec/template/type", "{{ .instanceType }}")},
			wantKind: "DockerMachinePool", want: spec{"template": spec{"type": "m5.large"}},
		},
		"from a pool": {
			kind: "AzureMachinePool", base: `{location: eastus, template: {vmSize: none}}`,
			wantKind: "AzureMachinePool", want: spec{"location": "eastus", "template": spec{"vmSize": "none"}},
		},
		"from a pool that was in use": {
			kind: "AzureMachinePool", base: `{location: eastus, providerID: "azure:///scaleset", providerIDList: ["azure:///scaleset/0"]}`,
			wantKind: "AzureMachinePool", want: spec{"location": "eastus"},
		},
		"from a pool with patches": {
			kind: "AzureMachinePool", base: `{location: eastus, template: {vmSize: none}}`,
			patches:  []v1alpha1.Patch{fixture.Patch("/spec/template/vmSize", "{{ .instanceType }}")},
			wantKind: "AzureMachinePool", want: spec{"location": "eastus", "template": spec{"vmSize": "m5.large"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := fixture.PoolTemplate(tc.kind)
			template.Spec.Patches = tc.patches
			base := fixture.Base(t, tc.kind, tc.base)
			// A base can itself be a clone of something.
			base.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: "", clusterv1.TemplateClonedFromNameAnnotation: "x"})
			untouched := base.DeepCopy()
			generated := generateFrom(t, template, Bases{Infrastructure: base, Bootstrap: fixture.Bootstrap()}, fixture.Spot)
			pool := generated.Resource.API().(*clusterv1.MachinePool)

			content := pool.Labels[v1alpha1.TemplateHashLabel]
			labels := map[string]string{
				clusterv1.ClusterNameLabel: "prod", v1alpha1.TemplateLabel: "general", v1alpha1.TemplateHashLabel: content,
				v1alpha1.InstanceTypeLabel: "m5.large", v1alpha1.ZoneLabel: "us-east-1a", v1alpha1.CapacityTypeLabel: "spot",
			}
			object := func(apiVersion, kind, from string, more map[string]string, spec spec) map[string]any {
				all := map[string]any{}
				for _, labels := range []map[string]string{labels, more} {
					for key, value := range labels {
						all[key] = value
					}
				}
				return map[string]any{
					"apiVersion": apiVersion, "kind": kind, "spec": spec,
					"metadata": map[string]any{"namespace": "clusters", "name": pool.Name, "labels": all, "annotations": map[string]any{
						clusterv1.TemplateClonedFromNameAnnotation: "workers", clusterv1.TemplateClonedFromGroupKindAnnotation: from}},
				}
			}
			want := []map[string]any{
				object("infrastructure.cluster.x-k8s.io/v1beta2", tc.wantKind, tc.kind+".infrastructure.cluster.x-k8s.io", tc.labels, tc.want),
				object("bootstrap.cluster.x-k8s.io/v1beta2", "OtherConfig", "OtherConfigTemplate.bootstrap.cluster.x-k8s.io", nil, spec{}),
			}
			var got []map[string]any
			for _, object := range generated.Objects {
				got = append(got, object.Object)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			wantPool := &clusterv1.MachinePool{
				ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "general-m5-large-us-east-1a-spot-" + hash.InName(content), Labels: labels,
					Annotations: map[string]string{v1alpha1.InPlaceHashAnnotation: inPlaceHash(template)}},
				Spec: clusterv1.MachinePoolSpec{
					ClusterName: "prod", FailureDomains: []string{"us-east-1a"},
					Template: clusterv1.MachineTemplateSpec{
						// No hook: Cluster API would put it on Machines again.
						ObjectMeta: clusterv1.ObjectMeta{Annotations: map[string]string{"note": "hello"}, Labels: map[string]string{"team": "platform"}},
						Spec: clusterv1.MachineSpec{
							ClusterName: "prod", Version: "v1.36.3",
							InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: tc.wantKind, Name: pool.Name},
							Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
								APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "OtherConfig", Name: pool.Name}},
						},
					},
				},
			}
			for key, value := range labels {
				wantPool.Spec.Template.Labels[key] = value
			}
			if diff := cmp.Diff(wantPool, pool); diff != "" {
				t.Errorf("MachinePool (-want +got):\n%s", diff)
			}
			if scalable.OfferingOf(pool) != fixture.Spot {
				t.Errorf("got offering %s back", scalable.OfferingOf(pool))
			}
			if diff := cmp.Diff(untouched, base); diff != "" {
				t.Errorf("the base has changed (-before +after):\n%s", diff)
			}
		})
	}
}

// Offerings do not share objects: Cluster API makes the MachinePool their controller.
func TestMachinePoolsShareNothing(t *testing.T) {
	generator, err := NewGenerator(fixture.Served, fixture.PoolTemplate("AzureMachinePool"), Bases{Infrastructure: fixture.Base(t, "AzureMachinePool", `{}`), Bootstrap: fixture.Bootstrap()})
	if err != nil {
		t.Fatal(err)
	}
	types := typesOf(fixture.Template())
	names := map[string]bool{}
	for i := range types[0].Offerings {
		generated, err := generator.Generate(&types[0], &types[0].Offerings[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range generated.Objects {
			if name := object.GetKind() + "/" + object.GetName(); names[name] {
				t.Errorf("%s is generated twice", name)
			} else {
				names[name] = true
			}
		}
		if domains := generated.Resource.API().(*clusterv1.MachinePool).Spec.FailureDomains; (len(domains) == 0) != (types[0].Offerings[i].Zone == "") {
			t.Errorf("%s has failure domains %q", types[0].KeyOf(&types[0].Offerings[i]), domains)
		}
	}
}

func TestMachinePoolNames(t *testing.T) {
	nested := func(object *unstructured.Unstructured, value string, path ...string) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	of := func(change func(*v1alpha1.KarpenterMachineTemplate, Bases)) string {
		template, bases := fixture.PoolTemplate("AzureMachinePool"), Bases{Infrastructure: fixture.Base(t, "AzureMachinePool", `{location: eastus}`), Bootstrap: fixture.Bootstrap()}
		change(template, bases)
		return generateFrom(t, template, bases, fixture.Spot).Resource.GetName()
	}
	before := of(func(*v1alpha1.KarpenterMachineTemplate, Bases) {})
	if deployment, err := machineDeployment(fixture.Template(), fixture.Spot); err != nil || deployment.Name == before {
		t.Errorf("a MachineDeployment and a MachinePool have the name %s (%v)", before, err)
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplate, Bases)
		same   bool
	}{
		"a label of the bases": {func(_ *v1alpha1.KarpenterMachineTemplate, bases Bases) {
			bases.Infrastructure.SetLabels(map[string]string{"x": "y"})
			bases.Bootstrap.SetLabels(map[string]string{"x": "y"})
			bases.Infrastructure.SetResourceVersion("8")
		}, true},
		"the status of the base": {func(_ *v1alpha1.KarpenterMachineTemplate, bases Bases) {
			nested(bases.Infrastructure, "x", "status", "y")
		}, true},
		"allowNodeLoss": {func(t *v1alpha1.KarpenterMachineTemplate, _ Bases) { t.Spec.ScalableResource.AllowNodeLoss = true }, true},
		"the infrastructure": {func(_ *v1alpha1.KarpenterMachineTemplate, bases Bases) {
			nested(bases.Infrastructure, "westus", "spec", "location")
		}, false},
		"its kind": {func(_ *v1alpha1.KarpenterMachineTemplate, bases Bases) {
			bases.Infrastructure.SetKind("OtherMachinePool")
		}, false},
		"the bootstrap": {func(_ *v1alpha1.KarpenterMachineTemplate, bases Bases) {
			nested(bases.Bootstrap, "x", "spec", "template", "spec", "y")
		}, false},
		"a patch": {func(t *v1alpha1.KarpenterMachineTemplate, _ Bases) {
			t.Spec.Patches = []v1alpha1.Patch{fixture.Patch("/spec/location", "westus")}
		}, false},
		"the version": {func(t *v1alpha1.KarpenterMachineTemplate, _ Bases) { t.Spec.Template.Spec.Version = "v1.36.4" }, false},
		"the failure domain": {func(t *v1alpha1.KarpenterMachineTemplate, _ Bases) {
			t.Spec.FailureDomains = []v1alpha1.ZoneFailureDomain{{Zone: "us-east-1a", FailureDomain: "1"}}
		}, false},
		"a label of Machines": {func(t *v1alpha1.KarpenterMachineTemplate, _ Bases) { t.Spec.Template.Metadata.Labels["team"] = "x" }, true},
		"the template's name": {func(t *v1alpha1.KarpenterMachineTemplate, _ Bases) { t.Name = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if after := of(tc.change); (after == before) != tc.same {
				t.Errorf("got name %s, before %s: want same=%t", after, before, tc.same)
			}
		})
	}
}

// With a Secret, no bootstrap configuration is generated.
func TestMachinePoolWithSecret(t *testing.T) {
	template := fixture.PoolTemplate("AzureMachinePool")
	template.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("join")}
	generated := generateFrom(t, template, Bases{Infrastructure: fixture.Base(t, "AzureMachinePool", `{}`)}, fixture.Spot)
	bootstrap := generated.Resource.API().(*clusterv1.MachinePool).Spec.Template.Spec.Bootstrap
	if len(generated.Objects) != 1 || bootstrap.ConfigRef.IsDefined() || bootstrap.DataSecretName == nil || *bootstrap.DataSecretName != "join" {
		t.Errorf("got %d objects, bootstrap %+v", len(generated.Objects), bootstrap)
	}
}

// An infrastructureRef of an instance type is a base, too: it can have another kind, and is not patched.
func TestMachinePoolOfOwnInfrastructure(t *testing.T) {
	template := fixture.PoolTemplate("AzureMachinePool")
	template.Spec.Patches = []v1alpha1.Patch{fixture.Patch("/spec/location", "westus")}
	ofOwn := func(it *v1alpha1.InstanceType) {
		it.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachinePool", Name: "own"}
	}
	own := fixture.Base(t, "AWSMachinePool", `{minSize: 0}`)
	own.SetName("own")
	bases := Bases{Infrastructure: fixture.Base(t, "AzureMachinePool", `{location: eastus}`), Bootstrap: fixture.Bootstrap()}
	reads := func(object *unstructured.Unstructured, err error) func(clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
		return func(ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
			if ref.Name != "own" || ref.Kind != "AWSMachinePool" {
				t.Errorf("reads %+v", ref)
			}
			return object, err
		}
	}
	for name, tc := range map[string]struct {
		own       func(clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error)
		allow     bool
		wantError string
		unread    bool // whether the offering is valid is unknown then
	}{
		"that is allowed":       {own: reads(own, nil), allow: true},
		"that is rejected":      {own: reads(own, nil), wantError: "set spec.scalableResource.allowNodeLoss"},
		"that does not exist":   {own: reads(nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pools"}, "own")), allow: true, wantError: `KarpenterMachineTemplate general: infrastructureRef AWSMachinePool own: pools "own" not found`},
		"that cannot be read":   {own: reads(nil, errors.New("no answer")), allow: true, wantError: "KarpenterMachineTemplate general: infrastructureRef AWSMachinePool own: no answer", unread: true},
		"that nothing can read": {allow: true, wantError: "infrastructureRefs of instance types cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			template.Spec.ScalableResource.AllowNodeLoss = tc.allow
			bases.ByRef = tc.own
			generated, err := tryToGenerate(template, bases, fixture.Spot, ofOwn)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) || errors.As(err, &UnreadError{}) != tc.unread {
					t.Errorf("got %v, want %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pool := generated.Objects[0]
			if diff := cmp.Diff(map[string]any{"minSize": own.Object["spec"].(map[string]any)["minSize"]}, pool.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if pool.GetKind() != "AWSMachinePool" || pool.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] != "own" {
				t.Errorf("got %s with annotations %v", pool.GetKind(), pool.GetAnnotations())
			}
		})
	}
}

// What a base makes has the base's API group, version and kind, whatever patches or the base itself say. Cluster API's
// GenerateTemplate takes these from spec.template if they are there (controllers/external/util.go).
func TestKindOfWhatIsGenerated(t *testing.T) {
	const plain = `{template: {spec: {}}}`
	for name, tc := range map[string]struct {
		infrastructure, bootstrap string
		patches                   []v1alpha1.Patch
		want                      string
	}{
		"a kind": {plain, plain, []v1alpha1.Patch{fixture.Patch("/spec/template/kind", "OpenStackServer")},
			"patches of DockerMachinePoolTemplate workers may not set spec.template.kind, which only the base template can set"},
		"an API version": {plain, plain, []v1alpha1.Patch{fixture.Patch("/spec/template/apiVersion", "infrastructure.cluster.x-k8s.io/v1alpha1")},
			"patches of DockerMachinePoolTemplate workers may not set spec.template.apiVersion"},
		"a status": {plain, plain, []v1alpha1.Patch{fixture.Patch("/spec/template/status", "ready")},
			"patches of DockerMachinePoolTemplate workers may not set spec.template.status"},
		"a kind of the base":            {`{template: {kind: OpenStackServer, spec: {}}}`, plain, nil, "DockerMachinePoolTemplate clusters/workers makes a OpenStackServer of infrastructure.cluster.x-k8s.io/v1beta2, expected a DockerMachinePool of infrastructure.cluster.x-k8s.io/v1beta2: remove apiVersion and kind from its spec.template"},
		"an API version of the base":    {`{template: {apiVersion: cluster.x-k8s.io/v1beta2, spec: {}}}`, plain, nil, "makes a DockerMachinePool of cluster.x-k8s.io/v1beta2"},
		"a kind of bootstrap data":      {plain, `{template: {kind: KubeadmConfig, spec: {}}}`, nil, "OtherConfigTemplate clusters/workers makes a KubeadmConfig of bootstrap.cluster.x-k8s.io/v1beta2"},
		"the kind that it makes anyway": {`{template: {kind: DockerMachinePool, spec: {}}}`, plain, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			template := fixture.PoolTemplate("DockerMachinePoolTemplate")
			template.Spec.Patches = tc.patches
			bootstrap := fixture.Bootstrap()
			bootstrap.Object["spec"] = fixture.YAML(t, tc.bootstrap)
			_, err := tryToGenerate(template, Bases{Infrastructure: fixture.Base(t, "DockerMachinePoolTemplate", tc.infrastructure), Bootstrap: bootstrap}, fixture.Spot)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
