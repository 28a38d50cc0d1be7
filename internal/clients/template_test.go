// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// cached is a cluster with the cache of one template, which copies like controller-runtime's.
type cached struct {
	cluster.Cluster
	client.Client
	template *v1alpha1.KarpenterMachineTemplate
}

func (c *cached) GetClient() client.Client { return c }

// Get implements client.Reader.
func (c *cached) Get(_ context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if c.template == nil || key.Name != c.template.Name {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "karpentermachinetemplates"}, key.Name)
	}
	given := (&client.GetOptions{}).ApplyOptions(options)
	if given.UnsafeDisableDeepCopy != nil && *given.UnsafeDisableDeepCopy {
		*into.(*v1alpha1.KarpenterMachineTemplate) = *c.template
		return nil
	}
	c.template.DeepCopyInto(into.(*v1alpha1.KarpenterMachineTemplate))
	return nil
}

// management is a cluster with the cache of MachineDeployments, which can be read without copies.
type management struct {
	cluster.Cluster
	client.Client
	deployments []clusterv1.MachineDeployment
	fails       error
}

func (m *management) GetClient() client.Client { return m }

// Get implements client.Reader.
func (m *management) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for i := range m.deployments {
		if client.ObjectKeyFromObject(&m.deployments[i]) == key {
			*into.(*clusterv1.MachineDeployment) = m.deployments[i]
			return m.fails
		}
	}
	return cmp.Or(m.fails, error(apierrors.NewNotFound(schema.GroupResource{Resource: "machinedeployments"}, key.Name)))
}

// List implements client.Reader.
func (m *management) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	given := (&client.ListOptions{}).ApplyOptions(options)
	for _, deployment := range m.deployments {
		if given.FieldSelector.Matches(fields.Set{TopologyEntryField: pattern.Entry(&deployment)}) {
			list.(*clusterv1.MachineDeploymentList).Items = append(list.(*clusterv1.MachineDeploymentList).Items, deployment)
		}
	}
	return m.fails
}

// newPattern returns a MachineDeployment of a topology.
func newPattern() clusterv1.MachineDeployment {
	deployment := clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "md", UID: "1", ResourceVersion: "1", Labels: map[string]string{
		clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md-0",
	}}}
	deployment.Spec.Template.Spec = clusterv1.MachineSpec{Version: "v1.36.3", InfrastructureRef: clusterv1.ContractVersionedObjectReference{Name: "x"}}
	return deployment
}

// follower returns a template that follows newPattern and was examined with it, and the clusters of both.
func follower(from v1alpha1.MachineTemplateSource) (*v1alpha1.KarpenterMachineTemplate, *management, *Clusters) {
	deployment := newPattern()
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "1", ResourceVersion: "1"}}
	template.Spec.Template.From = &from
	template.Status.From = &pattern.Observe(&deployment).ObservedMachineTemplate
	of := &management{deployments: []clusterv1.MachineDeployment{deployment}}
	return template, of, &Clusters{Cluster: types.NamespacedName{Namespace: "fleet", Name: "prod"}, Workload: &cached{template: template}, Management: of}
}

// A template has what its MachineDeployment has now, if the operator has examined that.
func TestTemplateOfAMachineDeployment(t *testing.T) {
	broken := errors.New("the cache is not started")
	for name, tc := range map[string]struct {
		change  func(*management)
		version string // of the resolved template; empty if it is Pending
		fails   error
	}{
		"examined":           {func(*management) {}, "v1.36.3", nil},
		"its status changes": {func(m *management) { m.deployments[0].ResourceVersion = "2" }, "v1.36.3", nil},
		"its version changes": {func(m *management) {
			m.deployments[0].ResourceVersion, m.deployments[0].Spec.Template.Spec.Version = "2", "v1.36.4"
		}, "", nil},
		"it is being deleted": {func(m *management) {
			m.deployments[0].ResourceVersion, m.deployments[0].DeletionTimestamp = "2", &metav1.Time{Time: time.Unix(1, 0)}
		}, "", nil},
		"it does not exist":            {func(m *management) { m.deployments = nil }, "", nil},
		"another one of the same name": {func(m *management) { m.deployments[0].UID = "2" }, "v1.36.3", nil},
		"it cannot be read":            {func(m *management) { m.fails = broken }, "", broken},
	} {
		for _, from := range []v1alpha1.MachineTemplateSource{{MachineDeployment: "md"}, {MachineDeploymentTopology: "md-0"}} {
			t.Run(fmt.Sprintf("%s, by %+v", name, from), func(t *testing.T) {
				stored, management, clusters := follower(from)
				if template, err := clusters.Template(t.Context(), "general"); err != nil || template.Spec.Template.Spec.Version != "v1.36.3" {
					t.Fatalf("before: got %+v and %v", template, err)
				}
				tc.change(management)
				for call, get := range map[string]func(context.Context, string) (*v1alpha1.KarpenterMachineTemplate, error){"Template": clusters.Template, "SharedTemplate": clusters.SharedTemplate} {
					template, err := get(t.Context(), "general")
					if !errors.Is(err, tc.fails) || (err != nil) != (tc.fails != nil) {
						t.Fatalf("%s: got %v, want %v", call, err, tc.fails)
					}
					if err != nil {
						continue
					}
					if template.Spec.Template.Spec.Version != tc.version || pattern.Pending(template) != (tc.version == "") {
						t.Errorf("%s: got version %q, pending %t", call, template.Spec.Template.Spec.Version, pattern.Pending(template))
					}
				}
				if stored.Spec.Template.Spec.Version != "" || stored.Status.From == nil {
					t.Error("the template in the cache has changed")
				}
			})
		}
	}
}

// shared returns the shared template general.
func shared(t *testing.T, clusters *Clusters) *v1alpha1.KarpenterMachineTemplate {
	t.Helper()
	template, err := clusters.SharedTemplate(t.Context(), "general")
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// A MachineDeployment whose replicas or status change costs no copy of the templates that follow it, and one that becomes
// what it was before is known again.
func TestSharedTemplateOfAMachineDeployment(t *testing.T) {
	_, management, clusters := follower(v1alpha1.MachineTemplateSource{MachineDeployment: "md"})
	get := func() *v1alpha1.KarpenterMachineTemplate { return shared(t, clusters) }
	first := get()
	management.deployments[0].ResourceVersion, management.deployments[0].Spec.Replicas = "2", new(int32(3))
	if get() != first {
		t.Error("its replicas lead to another copy")
	}
	management.deployments[0].ResourceVersion, management.deployments[0].Spec.Template.Spec.Version = "3", "v1.36.4"
	if got := get(); !pattern.Pending(got) || get() != got {
		t.Error("its version does not lead to another copy, or to several")
	}
	management.deployments[0].ResourceVersion, management.deployments[0].Spec.Template.Spec.Version = "4", "v1.36.3"
	if pattern.Pending(get()) {
		t.Error("what was examined is not known any more")
	}
}

// A large template is copied once for each of its versions, and not for each call.
func TestSharedTemplate(t *testing.T) {
	stored, _, clusters := follower(v1alpha1.MachineTemplateSource{MachineDeployment: "md"})
	for i := range 100 {
		stored.Spec.Patches = append(stored.Spec.Patches, v1alpha1.Patch{EnabledIf: fmt.Sprint(i), JSONPatches: []v1alpha1.JSONPatch{{Op: "add", Path: "/spec/x"}}})
	}
	workload := clusters.Workload.(*cached)
	get := func() *v1alpha1.KarpenterMachineTemplate { return shared(t, clusters) }
	first := get()
	if first.Spec.Template.Spec.Version != "v1.36.3" || stored.Spec.Template.Spec.Version != "" {
		t.Errorf("got version %q, and %q in the cache: want it resolved, and the cache unchanged", first.Spec.Template.Spec.Version, stored.Spec.Template.Spec.Version)
	}
	if allocations := testing.AllocsPerRun(10, func() { get() }); allocations > 20 {
		t.Errorf("a template that has not changed takes %v allocations", allocations)
	}
	version := first.ResourceVersion
	first.StatusConditions()
	if len(stored.Status.Conditions) > 0 || get() != first || first.ResourceVersion != version {
		t.Error("reading conditions changes the template in the cache")
	}
	for name, change := range map[string]func(*v1alpha1.KarpenterMachineTemplate){
		"another version":                   func(t *v1alpha1.KarpenterMachineTemplate) { t.ResourceVersion = "2" },
		"another template of the same name": func(t *v1alpha1.KarpenterMachineTemplate) { t.UID = "2" },
	} {
		before := get()
		workload.template = workload.template.DeepCopy()
		change(workload.template)
		if got := get(); got == before || got.UID != workload.template.UID || got.ResourceVersion != workload.template.ResourceVersion {
			t.Errorf("%s: got the one before", name)
		}
	}
	workload.template = nil
	if got := get(); got != nil {
		t.Error("got a template that does not exist")
	}
}
