// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// testCluster is one API server for both clusters. It counts reads, and reads can fail.
type testCluster struct {
	client.Client
	reads atomic.Int64
	// shared are listed without a copy, as by the cache.
	shared []v1alpha1.InstanceTypeCatalog
	err    error
}

type clusterOf struct {
	cluster.Cluster
	client client.Client
}

func (c clusterOf) GetClient() client.Client { return c.client }

// newWorld returns a Catalog for the given objects.
func newWorld(t testing.TB, objects ...client.Object) (*Catalog, *testCluster) {
	t.Helper()
	w := &testCluster{}
	count := func() error { w.reads.Add(1); return w.err }
	w.Client = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
			return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if err := count(); err != nil {
					return err
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				catalogs, is := list.(*v1alpha1.InstanceTypeCatalogList)
				if is && w.shared != nil && w.err == nil {
					catalogs.Items = w.shared
					return nil
				}
				if is && w.err == nil { // each use of an entry compares the versions of its catalogs
					return c.List(ctx, list, opts...)
				}
				if err := count(); err != nil {
					return err
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
	both := clusterOf{client: w}
	return New(&clients.Clusters{Cluster: types.NamespacedName{Namespace: "fleet", Name: "served"}, Workload: both, Management: both}), w
}

// nodeClaim returns a NodeClaim that was launched with an offering of the template general.
func nodeClaim(name string, key Key) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
		corev1.LabelInstanceTypeStable: key.InstanceType, karpv1.CapacityTypeLabelKey: key.CapacityType,
		corev1.LabelArchStable: "arm64", karpv1.NodePoolLabelKey: "pool", "example.com/unknown": "x",
	}, Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: "md", v1alpha1.PriceAnnotation: "0.7"}}}
	if key.Zone != "" {
		c.Labels[corev1.LabelTopologyZone] = key.Zone
	}
	c.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
	c.Status.Capacity = corev1.ResourceList(list("cpu", "4", "memory", "16Gi"))
	c.Status.Allocatable = corev1.ResourceList(list("cpu", "3900m", "memory", "15Gi"))
	return c
}

// awsMachineTemplates returns the CustomResourceDefinition of the kind of infrastructureTemplate.
func awsMachineTemplates() *unstructured.Unstructured {
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("awsmachinetemplates.infrastructure.cluster.x-k8s.io")
	definition.SetLabels(map[string]string{clusterv1.GroupVersion.Group + "/v1beta2": "v1beta2"})
	return definition
}

func byName(instanceTypes []*cloudprovider.InstanceType) map[string]*cloudprovider.InstanceType {
	found := map[string]*cloudprovider.InstanceType{}
	for _, instanceType := range instanceTypes {
		found[instanceType.Name] = instanceType
	}
	return found
}

func TestTheCatalogReadsOnlyWhatItDoesNotKnow(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	c, w := newWorld(t, listed(m5large()))
	input := template("types")
	input.UID, input.Generation, input.ResourceVersion = "1", 1, "1"
	first, err := c.InstanceTypes(ctx, input, now)
	if err != nil || w.reads.Load() == 0 {
		t.Fatalf("got %v after %d reads", err, w.reads.Load())
	}
	w.reads.Store(0)
	again, _ := c.InstanceTypes(ctx, input.DeepCopy(), now)
	if _, found, err := c.Find(ctx, input, Key{"m5.large", "a", "spot"}); err != nil || found.CapacityType != "spot" || found.Zone != "a" {
		t.Errorf("got %+v and %v", found, err)
	}
	if &first[0] != &again[0] || w.reads.Load() != 0 {
		t.Errorf("built again, with %d reads, although nothing has changed", w.reads.Load())
	}
	if _, err := c.Refresh(ctx, input); err != nil {
		t.Fatal(err)
	}
	if refreshed, _ := c.InstanceTypes(ctx, input, now); &first[0] != &refreshed[0] {
		t.Error("built again although Refresh has found no change")
	}
	input.Generation, input.ResourceVersion = 2, "2"
	input.Spec.CatalogRefs = nil
	if changed, _ := c.InstanceTypes(ctx, input, now); len(changed) != 0 {
		t.Error("not built again although the spec has changed")
	}
	recreated := template("types")
	recreated.UID, recreated.Generation, recreated.ResourceVersion = "2", 2, "2"
	if got, _ := c.InstanceTypes(ctx, recreated, now); len(got) != 1 {
		t.Error("not built again for another template of the same name")
	}
	if _, _, err := c.Find(ctx, recreated, Key{"m5.large", "x", "spot"}); !IsNotOffered(err) || IsUndiscovered(err) || !strings.Contains(err.Error(), "KarpenterMachineTemplate general has no offering m5.large/x/spot") {
		t.Errorf("got %v for an offering that does not exist", err)
	}
	c.Forget("general")
	if len(c.entries) != 0 {
		t.Error("the entry is kept although the template no longer exists")
	}
}

func TestAnErrorOfACacheLosesNothing(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	c, w := newWorld(t, listed(m5large()))
	input := template("types")
	input.UID, input.Generation = "1", 1
	w.err = apierrors.NewInternalError(errors.New("the cache is not filled"))
	if _, err := c.InstanceTypes(ctx, input, now); err == nil {
		t.Error("no error although the inputs could not be read")
	}
	w.err = nil
	if got, err := c.InstanceTypes(ctx, input, now); err != nil || len(got) != 1 {
		t.Errorf("got %d instance types and %v", len(got), err)
	}
	w.err = apierrors.NewInternalError(errors.New("the cache is stopped"))
	if _, err := c.Refresh(ctx, input); err == nil {
		t.Error("the error is lost")
	}
	if _, err := c.InstanceTypes(ctx, input, now); err == nil {
		t.Error("no error although it is unknown whether its catalogs have changed")
	}
	w.err = nil
	w.reads.Store(0)
	if got, err := c.InstanceTypes(ctx, input, now); err != nil || len(got) != 1 || w.reads.Load() > 0 {
		t.Errorf("got %d instance types and %v after an error, with %d reads", len(got), err, w.reads.Load())
	}
}

func TestTypesInUseStayListed(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	gone, lost, there := Key{"m6g.xlarge", "b", "spot"}, Key{"m5.large", "z", "on-demand"}, Key{"m5.large", "a", "spot"}
	goneToo, lostToo := Key{"m6g.xlarge", "c", "spot"}, Key{"m5.large", "b", "spot"} // b has only on-demand
	c, w := newWorld(t, listed(m5large()), nodeClaim("a", gone), nodeClaim("b", lost), nodeClaim("c", there), nodeClaim("d", goneToo), nodeClaim("e", lostToo))
	input := template("types")
	input.UID, input.Generation = "1", 1
	instanceTypes, err := c.InstanceTypes(ctx, input, now)
	if err != nil {
		t.Fatal(err)
	}
	got := byName(instanceTypes)
	if len(instanceTypes) != 2 || got["m6g.xlarge"] == nil {
		t.Fatalf("got %d instance types, want that of the template and that in use", len(instanceTypes))
	}
	retired := got["m6g.xlarge"]
	if len(retired.Offerings) != 2 || retired.Offerings[0].Available || retired.Offerings[0].Price != 0.7 || retired.Offerings[0].Zone() != "b" {
		t.Errorf("got offerings %+v", retired.Offerings)
	}
	if arch := retired.Requirements.Get(corev1.LabelArchStable).Any(); arch != "arm64" || retired.Requirements.Has("example.com/unknown") || retired.Requirements.Has(karpv1.NodePoolLabelKey) {
		t.Errorf("got requirements %s", retired.Requirements)
	}
	if memory := retired.Allocatable()[corev1.ResourceMemory]; memory.String() != "15Gi" {
		t.Errorf("got allocatable memory %s, want that of the claim", memory.String())
	}
	if offerings := got["m5.large"].Offerings; len(offerings) != 5 || offerings[4].Zone() != "z" || offerings[3].Zone() != "b" || offerings[3].Available || offerings[4].Available || len(offerings.Available()) != 3 {
		t.Errorf("a type that lost an offering in use has offerings %+v", offerings)
	}
	if types, _, _ := c.Types(ctx, input); len(types) != 1 || len(types[0].Offerings) != 3 {
		t.Errorf("an offering that is only in use counts as offered: %+v", types)
	}
	if _, _, err := c.Find(ctx, input, gone); err == nil {
		t.Error("Find returns an offering that is only in use")
	}

	for _, name := range []string{"a", "b", "d", "e"} {
		if err := w.Delete(ctx, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Refresh(ctx, input); err != nil {
		t.Fatal(err)
	}
	if instanceTypes, _ := c.InstanceTypes(ctx, input, now); len(instanceTypes) != 1 || len(instanceTypes[0].Offerings) != 3 {
		t.Error("still listed although its last claim no longer exists")
	}
}

func TestCatalogDiscovers(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	definition := awsMachineTemplates()
	large := infrastructureTemplate("large", nil)
	generated := infrastructureTemplate("generated", nil)
	generated.SetLabels(map[string]string{v1alpha1.TemplateLabel: "general"})
	// An object with the label of a Cluster belongs to that Cluster; one without is for all.
	copied, theirs, ours := infrastructureTemplate("copied", nil), infrastructureTemplate("theirs", nil), infrastructureTemplate("ours", nil)
	copied.SetLabels(map[string]string{v1alpha1.TemplateLabel: "general", clusterv1.ClusterNameLabel: "neighbour"})
	theirs.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "neighbour"})
	ours.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "served"})
	deleted := infrastructureTemplate("deleted", nil)
	deleted.SetFinalizers([]string{"x/y"})
	deleted.SetDeletionTimestamp(new(metav1.Now()))
	bad := infrastructureTemplate("bad", map[string]string{cpuAnnotation: "many"})
	existing := machineDeployment("md", map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"})
	c, w := newWorld(t, listed(m5large()), definition, large, generated, copied, theirs, ours, deleted, bad, existing)
	input := template("types")
	input.UID, input.Generation = "1", 1
	input.Spec.Discovery = &v1alpha1.Discovery{
		InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate"},
		MachineDeployments:      &v1alpha1.MachineDeploymentDiscovery{},
	}
	instanceTypes, err := c.InstanceTypes(ctx, input, now)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"large", "m5.large", "md", "ours"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(byName(instanceTypes)))); diff != "" {
		t.Errorf("instance types (-want +got):\n%s", diff)
	}
	_, problems, _ := c.Types(ctx, input)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "AWSMachineTemplate fleet/bad: annotation capacity.cluster-autoscaler.kubernetes.io/cpu: expected a quantity") {
		t.Errorf("got problems %+v", problems)
	}
	if _, found, err := c.Find(ctx, input, Key{"large", "", "on-demand"}); err != nil || found.InfrastructureRef.Name != "large" {
		t.Errorf("got %+v and %v", found, err)
	}
	kinds, err := c.Refresh(ctx, input)
	if err != nil || len(kinds) != 1 || kinds[0].Kind != "AWSMachineTemplate" {
		t.Errorf("got kinds %v and %v", kinds, err)
	}
	if err := w.Delete(ctx, large); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Refresh(ctx, input); err != nil {
		t.Fatal(err)
	}
	if instanceTypes, _ := c.InstanceTypes(ctx, input, now); len(instanceTypes) != 3 {
		t.Errorf("got %d instance types although a template was deleted", len(instanceTypes))
	}
	input.Generation = 2
	input.Spec.Discovery.InfrastructureTemplates.Kind = "NoSuchTemplate"
	if _, problems, err := c.Types(ctx, input); err != nil || len(problems) != 1 || problems[0].Reason != v1alpha1.ReasonReferenceKindUnusable || !strings.HasPrefix(problems[0].Message, "spec.discovery.infrastructureTemplates: ") {
		t.Errorf("got %+v and %v for a kind that does not exist", problems, err)
	}
}

// Templates are added, changed and forgotten while other goroutines read. With -race this finds data races.
func TestTheCatalogIsForManyAtOnce(t *testing.T) {
	objects := []client.Object{nodeClaim("a", Key{"gone", "a", "spot"})}
	for generation := range 20 {
		labelled := listed(m5large())
		labelled.Name = fmt.Sprint("types-", generation)
		labelled.Spec.InstanceTypes[0].Labels = map[string]v1alpha1.LabelValue{fmt.Sprintf("example.com/many-%d", generation): "x"}
		objects = append(objects, labelled)
	}
	c, _ := newWorld(t, objects...)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for generation := range int64(20) {
				input := template(fmt.Sprint("types-", generation))
				if i%2 == 0 {
					input.Name = fmt.Sprintf("template-%d", i)
				}
				input.Generation = generation
				instanceTypes, err := c.InstanceTypes(t.Context(), input, began)
				if err != nil || len(instanceTypes) == 0 || instanceTypes[0].Allocatable() == nil {
					t.Errorf("got %d instance types and %v", len(instanceTypes), err)
				}
				if _, err := c.Refresh(t.Context(), input); err != nil {
					t.Error(err)
				}
				scheduling.NewRequirements().IsCompatible(instanceTypes[0].Requirements, scheduling.AllowUndefinedWellKnownLabels)
			}
			c.Forget("template-0")
		})
	}
	all.Wait()
}
