// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// catalogOf returns an InstanceTypeCatalog whose types have one offering in zone a.
func catalogOf(name string, price v1alpha1.Decimal, instanceTypes ...string) *v1alpha1.InstanceTypeCatalog {
	c := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1}}
	c.Spec.Offerings = []v1alpha1.Offering{zonal("on-demand", "", "a")}
	for _, instanceType := range instanceTypes {
		c.Spec.InstanceTypes = append(c.Spec.InstanceTypes, v1alpha1.InstanceType{Name: instanceType, Capacity: list("cpu", "2", "memory", "8Gi"), Price: price})
	}
	return c
}

// referring returns a template with a name that refers to catalogs.
func referring(name string, catalogs ...string) *v1alpha1.KarpenterMachineTemplate {
	t := template(catalogs...)
	t.Name, t.UID, t.Generation, t.ResourceVersion = name, types.UID(name), 1, "1"
	return t
}

func offered(t *testing.T, c *Catalog, template *v1alpha1.KarpenterMachineTemplate) ([]string, string) {
	t.Helper()
	if _, err := c.Refresh(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	found, problems, err := c.Types(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range found {
		if len(found[i].Offerings) == 0 {
			t.Errorf("type %s has no offerings", found[i].Name)
		}
		for j := range found[i].Offerings {
			names = append(names, found[i].KeyOf(&found[i].Offerings[j]).String())
		}
	}
	var messages []string
	for _, problem := range problems {
		messages = append(messages, problem.Reason+" "+problem.Message)
	}
	return names, strings.Join(messages, "; ")
}

// Several templates share a catalog, and see its changes without a change of their own.
func TestTemplatesShareACatalog(t *testing.T) {
	listed := catalogOf("cloud", "1", "m5", "c5")
	c, w := newWorld(t, listed)
	one, two := referring("one", "cloud"), referring("two", "cloud", "gone")
	for _, template := range []*v1alpha1.KarpenterMachineTemplate{one, two} {
		if got, problems := offered(t, c, template); !slices.Equal(got, []string{"c5/a/on-demand", "m5/a/on-demand"}) || (problems != "") != (template == two) {
			t.Errorf("template %s offers %v, problems %q", template.Name, got, problems)
		}
	}
	if _, problems := offered(t, c, two); !strings.Contains(problems, "ReferenceNotFound spec.catalogRefs[1]: InstanceTypeCatalog gone does not exist: create it, or remove the reference") {
		t.Errorf("got %q", problems)
	}
	before, _ := c.InstanceTypes(t.Context(), one, began)
	if _, err := c.Refresh(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if again, _ := c.InstanceTypes(t.Context(), one, began); &again[0] != &before[0] {
		t.Error("an unchanged catalog is computed again")
	}

	listed.Spec.InstanceTypes, listed.Generation = append(catalogOf("", "2", "r5").Spec.InstanceTypes, listed.Spec.InstanceTypes[0]), 2
	if err := w.Update(t.Context(), listed); err != nil {
		t.Fatal(err)
	}
	if again, _ := c.InstanceTypes(t.Context(), one, began); len(again) != 2 || again[0].Name != "m5" || again[1].Name != "r5" {
		t.Error("a changed catalog takes effect only after a Refresh")
	}
	if got, _ := offered(t, c, one); !slices.Equal(got, []string{"m5/a/on-demand", "r5/a/on-demand"}) {
		t.Errorf("after a change: got %v", got)
	}
	if err := w.Delete(t.Context(), listed); err != nil {
		t.Fatal(err)
	}
	if got, problems := offered(t, c, one); len(got) > 0 || !strings.Contains(problems, "InstanceTypeCatalog cloud does not exist") {
		t.Errorf("after its deletion: got %v and %q", got, problems)
	}
	if _, _, err := c.Find(t.Context(), one, Key{"m5", "a", "on-demand"}); !IsUndiscovered(err) || IsNotOffered(err) {
		t.Errorf("after its deletion: got %v, want that it is unknown whether it is offered", err)
	}
}

// A type that a NodeClaim has stays when its catalog is deleted, so that Karpenter does not replace it.
func TestTypesInUseOutliveTheirCatalog(t *testing.T) {
	c, _ := newWorld(t, nodeClaim("claim", Key{"m5", "a", "on-demand"}))
	template := referring("general", "gone")
	if got, _ := offered(t, c, template); len(got) > 0 {
		t.Fatalf("got %v", got)
	}
	got, err := c.InstanceTypes(t.Context(), template, began)
	if err != nil || len(got) != 1 || got[0].Name != "m5" || got[0].Offerings[0].Available {
		t.Errorf("got %v and %v, want the type of the claim, unavailable", got, err)
	}
}

func TestCatalogsThatContradict(t *testing.T) {
	elsewhere, both, larger := catalogOf("elsewhere", "3", "m5"), catalogOf("both", "3", "m5"), catalogOf("larger", "3", "m5", "c5")
	elsewhere.Spec.Offerings = []v1alpha1.Offering{zonal("on-demand", "", "b")}
	both.Spec.Offerings = []v1alpha1.Offering{zonal("on-demand", "", "a", "b")}
	larger.Spec.InstanceTypes[0].Capacity = list("cpu", "4", "memory", "8Gi")
	withoutBase := referring("base", "one")
	withoutBase.Spec.Template.Spec.InfrastructureRef = nil
	greedy := referring("greedy", "one")
	greedy.Spec.Kubelet = &v1alpha1.KubeletConfiguration{KubeReserved: list("memory", "9Gi")}
	c, _ := newWorld(t, catalogOf("one", "1", "m5"), catalogOf("two", "2", "m5"), elsewhere, both, larger)
	for name, tc := range map[string]struct {
		template *v1alpha1.KarpenterMachineTemplate
		want     []string
		problem  string
	}{
		"two catalogs with one offering": {referring("two", "one", "two"), nil,
			"SourcesConflict instance type m5: InstanceTypeCatalog two contradicts InstanceTypeCatalog one: both have offering m5/a/on-demand; this offering is left out"},
		"two with other offerings": {referring("other", "one", "elsewhere"), []string{"m5/b/on-demand", "m5/a/on-demand"}, ""},
		"one offering of two in common": {referring("common", "one", "both"), []string{"m5/b/on-demand"},
			"SourcesConflict instance type m5: InstanceTypeCatalog one contradicts InstanceTypeCatalog both: both have offering m5/a/on-demand; this offering is left out"},
		"another capacity": {referring("capacity", "one", "larger"), []string{"c5/a/on-demand"},
			"SourcesConflict instance type m5: InstanceTypeCatalog one contradicts InstanceTypeCatalog larger: capacity.cpu: 2 instead of 4; none is offered"},
		"no base":                      {withoutBase, nil, "InstanceTypesInvalid InstanceTypeCatalog one (m5): infrastructureRef: set it here or in spec.template.spec"},
		"less memory than is reserved": {greedy, nil, "InstanceTypesInvalid InstanceTypeCatalog one (m5): kubelet reserves more memory than the capacity of 8Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := offered(t, c, tc.template)
			if !slices.Equal(got, tc.want) || !strings.HasPrefix(problems, tc.problem) || (problems != "") != (tc.problem != "") {
				t.Errorf("got %v and %q, want %v and %q", got, problems, tc.want, tc.problem)
			}
		})
	}
}

// Zones without a failure domain of the Cluster are not offered, and are reported at once.
func TestZonesOfTheCluster(t *testing.T) {
	listed := catalogOf("cloud", "1", "m5")
	listed.Spec.Offerings = []v1alpha1.Offering{zonal("on-demand", "", "east-1", "east-2"), zonal("spot", "", "east-2")}
	mapped := []v1alpha1.ZoneFailureDomain{{Zone: "east-1", FailureDomain: "1"}, {Zone: "east-2", FailureDomain: "2"}}
	all := []string{"m5/east-1/on-demand", "m5/east-2/on-demand", "m5/east-2/spot"}
	for name, tc := range map[string]struct {
		domains []string
		mapped  []v1alpha1.ZoneFailureDomain
		want    []string
		problem string
	}{
		"the Cluster reports none":     {nil, nil, all, ""},
		"the Cluster has all":          {[]string{"east-2", "east-1"}, nil, all, ""},
		"they have other names":        {[]string{"1", "2", "3"}, mapped, all, ""},
		"one zone is unknown":          {[]string{"east-1"}, nil, all[:1], "ZonesUnknown the Cluster has no failure domain for the zones east-2: correct the zones of the offerings, or set spec.failureDomains. The Cluster has the failure domains east-1"},
		"all are unknown":              {[]string{"3", "1", "2"}, nil, nil, "ZonesUnknown the Cluster has no failure domain for the zones east-1, east-2: correct the zones of the offerings, or set spec.failureDomains. The Cluster has the failure domains 1, 2, 3"},
		"mapped to one that is absent": {[]string{"1"}, mapped, all[:1], "ZonesUnknown the Cluster has no failure domain for the zones east-2"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}}
			for _, domain := range tc.domains {
				cluster.Status.FailureDomains = append(cluster.Status.FailureDomains, clusterv1.FailureDomain{Name: domain})
			}
			c, _ := newWorld(t, listed, cluster)
			template := referring("general", "cloud")
			template.Spec.FailureDomains = tc.mapped
			got, problems := offered(t, c, template)
			if !slices.Equal(got, tc.want) || !strings.HasPrefix(problems, tc.problem) || (problems != "") != (tc.problem != "") {
				t.Errorf("got %v and %q, want %v and %q", got, problems, tc.want, tc.problem)
			}
		})
	}
}

// Offerings without a zone need no failure domain, and Machines of a MachineDeployment are in the one that it has.
func TestOfferingsOfNoFailureDomain(t *testing.T) {
	listed := catalogOf("cloud", "1", "m5")
	listed.Spec.Offerings = []v1alpha1.Offering{zonal("on-demand", "")}
	existing := machineDeployment("md", map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"})
	existing.Spec.Template.Spec.FailureDomain = "9"
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}}
	cluster.Status.FailureDomains = []clusterv1.FailureDomain{{Name: "1"}}
	c, _ := newWorld(t, listed, cluster, existing)
	template := referring("general", "cloud")
	template.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
	if got, problems := offered(t, c, template); !slices.Equal(got, []string{"m5/on-demand", "md/9/on-demand"}) || problems != "" {
		t.Errorf("got %v and %q", got, problems)
	}
}

// The limit of a catalog counts the NodeClaims of all templates that offer it, and no NodeClaims of other operators.
// A template with a catalog of its own has a limit of its own.
func TestLimitOfACatalog(t *testing.T) {
	listed := catalogOf("metal", "1", "m5")
	listed.Spec.Offerings[0].MaxMachines = new(int32(2))
	key := Key{"m5", "a", "on-demand"}
	first, second, foreign := nodeClaim("first", key), nodeClaim("second", key), nodeClaim("foreign", key)
	first.Spec.NodeClassRef.Name, second.Spec.NodeClassRef.Name, foreign.Spec.NodeClassRef.Name = "one", "two", "two"
	foreign.Spec.NodeClassRef.Kind = "EC2NodeClass"
	one, two, alone := referring("one", "metal"), referring("two", "metal"), referring("alone", "own")
	copied := listed.DeepCopy()
	copied.Name, copied.UID = "own", "own"
	own := nodeClaim("own", key)
	own.Spec.NodeClassRef.Name = "alone"
	c, w := newWorld(t, listed, copied, one, two, alone, first, foreign, own)
	uses := func(template *v1alpha1.KarpenterMachineTemplate) ([]string, Usage) {
		t.Helper()
		limits, err := c.Limits(t.Context(), template)
		if err != nil {
			t.Fatal(err)
		}
		claims, err := ClaimsThatCount(t.Context(), c.clusters, template, limits)
		if err != nil {
			t.Fatal(err)
		}
		return lo.Map(claims, func(c karpv1.NodeClaim, _ int) string { return c.Name }), limits.Use(claims)
	}
	for _, template := range []*v1alpha1.KarpenterMachineTemplate{one, two} {
		if names, usage := uses(template); usage.Full(key) {
			t.Errorf("template %s is at its limit with one NodeClaim of it: %v", template.Name, names)
		}
	}
	if err := w.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	for _, template := range []*v1alpha1.KarpenterMachineTemplate{one, two} {
		if names, usage := uses(template); !usage.Full(key) || usage.Total() != 1 {
			t.Errorf("template %s is not at the limit of the catalog: %v", template.Name, names)
		}
	}
	if names, usage := uses(alone); usage.Full(key) || usage.offerings[key] != 1 {
		t.Errorf("template alone has a catalog of its own, and counts %d of %v", usage.offerings[key], names)
	}
	w.err = errors.New("the cache is not filled")
	if _, err := c.Limits(t.Context(), one); err == nil {
		t.Error("an error of the cache is lost")
	}
	if _, err := ClaimsThatCount(t.Context(), c.clusters, one, Limits{shared: true}); err == nil {
		t.Error("an error of the cache is lost, and no NodeClaim counts")
	}
}
