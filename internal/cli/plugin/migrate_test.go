// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// otherAutoscaler returns a source of the objects in testdata/migrate.yaml, with changes, and the Cluster of the world.
func otherAutoscaler(t *testing.T, changes ...edit) (source, client.Client) {
	t.Helper()
	from := world(t)
	clusters, err := from.connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("testdata/migrate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := clusters.Workload.GetClient()
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		if object := objectOf(t, document); keep(object, changes) {
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	return from, c
}

// The printed plans are in testdata/golden, to the byte. Printing writes nothing.
func TestMigrate(t *testing.T) {
	for _, command := range []string{"migrate cluster-autoscaler", "migrate pkca"} {
		t.Run(command, func(t *testing.T) {
			from, c := otherAutoscaler(t)
			got, messages, code := runIn(t, from, strings.Fields(command)...)
			if code != 0 {
				t.Fatal(messages)
			}
			for _, name := range []string{"adopted", "adopted-gpu", "shared"} {
				if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &v1alpha1.KarpenterMachineTemplate{}); !apierrors.IsNotFound(err) {
					t.Errorf("template %s: %v, want that it is not written", name, err)
				}
			}
			compareGolden(t, command, got)
		})
	}
}

// A kind that cannot be read is no kind that does not exist: nothing is planned from half of what there is.
func TestMigrateForbidden(t *testing.T) {
	from, c := otherAutoscaler(t)
	denied := interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if object.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, key.Name, nil)
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	from.connect = func(context.Context, *view.Options) (*clients.Clusters, error) {
		both := fixture.Cluster{Client: denied}
		return &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil
	}
	out, messages, code := runIn(t, from, "migrate", "cluster-autoscaler")
	if code != 1 || out != "" || !strings.Contains(messages, "customresourcedefinitions") {
		t.Errorf("exit code %d, output %q, messages %q, want 1, none, and what is forbidden", code, out, messages)
	}
}

// With --apply, the objects are in the workload cluster, and the MachineDeployments and old NodePools have not changed.
func TestMigrateApply(t *testing.T) {
	for command, names := range map[string][2]string{"cluster-autoscaler": {"adopted", "adopted"}, "pkca": {"shared", "web-capi"}} {
		t.Run(command, func(t *testing.T) {
			from, c := otherAutoscaler(t)
			old := resourceVersions(t, c)
			_, messages, code := runIn(t, from, "migrate", command, "--apply")
			if code != 0 {
				t.Fatal(messages)
			}
			template, pool := &v1alpha1.KarpenterMachineTemplate{}, &karpv1.NodePool{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: names[0]}, template); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Name: names[1]}, pool); err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{"adopted": "10m0s Never", "web-capi": "30s 720h0m0s"} {
				if got := after(pool.Spec.Disruption.ConsolidateAfter) + " " + after(pool.Spec.Template.Spec.ExpireAfter); pool.Name == name && got != want {
					t.Errorf("consolidateAfter and expireAfter are %s, want %s", got, want)
				}
			}
			if ref := pool.Spec.Template.Spec.NodeClassRef; ref.Kind != v1alpha1.Kind || ref.Name != template.Name {
				t.Errorf("the NodePool refers to %+v, want template %s", ref, template.Name)
			}
			if diff := cmp.Diff(old, resourceVersions(t, c)); diff != "" {
				t.Errorf("MachineDeployments have changed:\n%s", diff)
			}
		})
	}
}

func after(d karpv1.NillableDuration) string {
	if d.Duration == nil {
		return "Never"
	}
	return d.String()
}

func resourceVersions(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	list := &clusterv1.MachineDeploymentList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for i := range list.Items {
		versions[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return versions
}

// What cannot be carried over is said for the object that it is about.
func TestMigrateSays(t *testing.T) {
	annotate := func(key, value string) edit {
		return named("workers-a", func(d *clusterv1.MachineDeployment) { d.Annotations[key] = value })
	}
	selector := func(value any) edit {
		return named("shared", func(u *unstructured.Unstructured) {
			u.Object["spec"] = map[string]any{"scalableResourceSelector": value}
		})
	}
	gone := []edit{without[*clusterv1.MachineDeployment]("workers-a"), without[*clusterv1.MachineDeployment]("workers-gpu"), without[*clusterv1.MachineDeployment]("workers-plain"), without[*clusterv1.MachinePool]("pool")}
	for name, tc := range map[string]struct {
		from    string
		changes []edit
		code    int
		want    string
	}{
		"nothing is scaled":         {"cluster-autoscaler", gone, 1, "no MachineDeployment of Cluster clusters/prod, apart from those of the operator, has both annotations"},
		"no NodeClass":              {"pkca", []edit{without[*unstructured.Unstructured]("shared")}, 1, "the workload cluster has no ClusterAPINodeClass"},
		"a wrong selector":          {"pkca", []edit{selector("tier=general")}, 1, "ClusterAPINodeClass shared: spec.scalableResourceSelector: expected a label selector"},
		"nothing selected":          {"pkca", []edit{selector(map[string]any{"matchLabels": map[string]any{"tier": "x"}})}, 0, "Nothing can be adopted yet"},
		"a taint no NodePool has":   {"pkca", []edit{selector(map[string]any{})}, 0, "Its Nodes join with the taint nvidia.com/gpu=true:NoSchedule. Add it"},
		"capacity cannot be read":   {"cluster-autoscaler", []edit{annotate("capacity.cluster-autoscaler.kubernetes.io/cpu", "four")}, 0, `annotation capacity.cluster-autoscaler.kubernetes.io/cpu: expected a quantity of at least 0, such as 4 or 16Gi, found "four"`},
		"the maximum is no number":  {"cluster-autoscaler", []edit{annotate(clusterv1.AutoscalerMaxSizeAnnotation, "many")}, 0, `expected a whole number of at least 0, found "many"`},
		"the minimum is no number":  {"cluster-autoscaler", []edit{annotate(clusterv1.AutoscalerMinSizeAnnotation, "few")}, 0, `is not a number: "few"`},
		"taints cannot be read":     {"cluster-autoscaler", []edit{annotate("capacity.cluster-autoscaler.kubernetes.io/taints", "x")}, 0, "expected taints in the form"},
		"the topology owns it":      {"cluster-autoscaler", []edit{named("workers-a", func(d *clusterv1.MachineDeployment) { d.Labels[clusterv1.ClusterTopologyOwnedLabel] = "" })}, 0, "It is of the Cluster's topology"},
		"the capacity is not known": {"cluster-autoscaler", nil, 0, "expected cpu in the status.capacity of the infrastructure template or the annotation"},
	} {
		t.Run(name, func(t *testing.T) {
			from, _ := otherAutoscaler(t, tc.changes...)
			out, messages, code := runIn(t, from, "migrate", tc.from)
			if code != tc.code || !strings.Contains(out+messages, tc.want) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s%s", code, tc.code, tc.want, out, messages)
			}
		})
	}
}
