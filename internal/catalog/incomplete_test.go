// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// blocked is a management cluster in which objects of providers cannot be listed: reads of them block
// and fail, as with the cache of the operator.
type blocked struct {
	client.Client
	listed atomic.Bool
	waits  atomic.Int64
}

const blockedFor = 5 * time.Second

func (b *blocked) wait(ctx context.Context, kind schema.GroupVersionKind) error {
	if b.listed.Load() || ctx.Err() != nil {
		return lo.Ternary[error](b.listed.Load(), nil, reference.Unlisted{Kind: kind.GroupKind()})
	}
	b.waits.Add(1)
	select {
	case <-ctx.Done():
	case <-time.After(blockedFor):
	}
	return reference.Unlisted{Kind: kind.GroupKind()}
}

// Get implements client.Reader.
func (b *blocked) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if found, ofProvider := object.(*unstructured.Unstructured); ofProvider {
		if err := b.wait(ctx, found.GroupVersionKind()); err != nil {
			return err
		}
	}
	return b.Client.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (b *blocked) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if found, ofProvider := list.(*unstructured.UnstructuredList); ofProvider {
		kind := found.GroupVersionKind()
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		if err := b.wait(ctx, kind); err != nil {
			return err
		}
	}
	return b.Client.List(ctx, list, options...)
}

// After a restart, Nodes run with types that are described and discovered, and the kind that discovery needs
// cannot be listed. What is known is offered, callers wait once together, and nothing seems to be removed.
func TestDiscoveryThatCannotBeRead(t *testing.T) {
	described, discovered, adopted := Key{"m5.large", "a", "spot"}, Key{"large", "", "on-demand"}, Key{"md", "", "on-demand"}
	definition := awsMachineTemplates()
	existing := machineDeployment("md", map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"})
	existing.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "large"}
	c, w := newWorld(t, listed(m5large()), definition, infrastructureTemplate("large", nil), existing, nodeClaim("a", described), nodeClaim("b", discovered), nodeClaim("c", adopted))
	management := &blocked{Client: w}
	c.clusters.Management = clusterOf{client: management}
	input := template("types")
	input.UID, input.Generation = "1", 1
	input.Spec.Discovery = &v1alpha1.Discovery{
		InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate"},
		MachineDeployments:      &v1alpha1.MachineDeploymentDiscovery{},
	}
	other := template("types")
	other.Name, other.UID, other.Generation = "other", "2", 1
	synctest.Test(t, func(t *testing.T) {
		ctx, began := t.Context(), time.Now()
		var all sync.WaitGroup
		defer all.Wait()
		all.Go(func() {
			if labels, _, known, err := c.NodeLabels(ctx, input, described.InstanceType); err != nil || !known || labels == nil && len(m5large().Labels) > 0 || time.Since(began) > 0 {
				t.Errorf("NodeLabels returns %v, %t and %v after %s", labels, known, err, time.Since(began))
			}
			if _, _, known, err := c.NodeLabels(ctx, input, discovered.InstanceType); err != nil || known || time.Since(began) > 0 {
				t.Errorf("NodeLabels returns %t and %v for a type that is not known, after %s", known, err, time.Since(began))
			}
		})
		for range 3 {
			all.Go(func() {
				instanceTypes, err := c.InstanceTypes(ctx, input, began)
				if err != nil {
					t.Error(err)
				}
				want := map[string]int{"m5.large": 3, "large": 0, "md": 0}
				if diff := cmp.Diff(want, lo.MapValues(byName(instanceTypes), func(i *cloudprovider.InstanceType, _ string) int { return len(i.Offerings.Available()) })); diff != "" {
					t.Errorf("available offerings (-want +got):\n%s", diff)
				}
			})
		}
		synctest.Wait()
		if got, err := c.InstanceTypes(ctx, other, began); err != nil || len(got) != 1 || time.Since(began) > 0 {
			t.Errorf("another template gets %d instance types and %v after %s", len(got), err, time.Since(began))
		}
		all.Wait()
		if waits := management.waits.Load(); waits > 2 || time.Since(began) > 2*blockedFor {
			t.Errorf("three callers have waited %d times, in %s", waits, time.Since(began))
		}
		began = time.Now()
		if _, err := c.InstanceTypes(ctx, input, began); err != nil || time.Since(began) > 0 {
			t.Errorf("a later call returns %v after %s", err, time.Since(began))
		}
		if _, _, err := c.Find(ctx, input, described); err != nil {
			t.Error(err)
		}
		for _, key := range []Key{discovered, adopted} {
			if _, _, err := c.Find(ctx, input, key); !IsUndiscovered(err) || IsNotOffered(err) {
				t.Errorf("Find returns %v for offering %s", err, key)
			}
		}
		_, problems, err := c.Types(ctx, input)
		if err != nil || len(problems) != 2 || problems[0].Reason != v1alpha1.ReasonDiscoveryIncomplete ||
			!strings.Contains(problems[0].Message, "spec.discovery.infrastructureTemplates: objects of kind AWSMachineTemplate.infrastructure.cluster.x-k8s.io cannot be listed") {
			t.Errorf("got problems %+v and %v", problems, err)
		}
	})
	management.listed.Store(true)
	if kinds, err := c.Refresh(t.Context(), input); err != nil || len(kinds) != 1 {
		t.Errorf("got kinds %v and %v", kinds, err)
	}
	for _, key := range []Key{described, discovered, adopted} {
		if _, _, err := c.Find(t.Context(), input, key); err != nil {
			t.Errorf("Find returns %v after the kind was listed", err)
		}
	}
	if _, problems, _ := c.Types(t.Context(), input); len(problems) > 0 {
		t.Errorf("got problems %+v after the kind was listed", problems)
	}
}

// unreadable is a management cluster in which objects of one kind cannot be read. It lists objects in another order
// each time, as caches do.
type unreadable struct {
	client.Client
	kind  string
	lists int
}

func (u *unreadable) check(object runtime.Object) error {
	gvk, err := apiutil.GVKForObject(object, u.Scheme())
	if err == nil && strings.TrimSuffix(gvk.Kind, "List") == u.kind {
		err = errors.New("objects of this kind cannot be read")
	}
	return err
}

// Get implements client.Reader.
func (u *unreadable) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := u.check(object); err != nil {
		return err
	}
	return u.Client.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (u *unreadable) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := u.check(list); err != nil {
		return err
	}
	if err := u.Client.List(ctx, list, options...); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if u.lists++; u.lists%2 == 0 {
		slices.Reverse(items)
	}
	return errors.Join(err, meta.SetList(list, items))
}

// What cannot be read is one problem for all objects of its kind, and the offerings that need it can come back.
func TestKindsThatCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		kind string
		want string
	}{
		"the definitions of kinds":       {"CustomResourceDefinition", "spec.discovery.infrastructureTemplates: "},
		"MachineDeployments":             {"MachineDeployment", "spec.discovery.machineDeployments: objects of this kind cannot be read"},
		"their infrastructure templates": {"AWSMachineTemplate", "spec.discovery.machineDeployments: getting AWSMachineTemplate fleet/large: objects of this kind cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := machineDeployment("md-1", map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"}), machineDeployment("md-2", nil)
			one.Spec.Template.Spec.InfrastructureRef.Name, two.Spec.Template.Spec.InfrastructureRef.Name = "large", "large"
			c, w := newWorld(t, awsMachineTemplates(), infrastructureTemplate("large", nil), one, two)
			c.clusters.Management = clusterOf{client: &unreadable{Client: w, kind: tc.kind}}
			input := known(template(), 1)
			input.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
			if tc.kind == "CustomResourceDefinition" {
				input.Spec.Discovery = &v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate"}}
			}
			if _, _, err := c.Find(t.Context(), input, Key{"md-1", "", "on-demand"}); !IsUndiscovered(err) {
				t.Errorf("got %v, want that the offering may come back", err)
			}
			if _, problems, err := c.Types(t.Context(), input); err != nil || len(problems) != 1 || problems[0].Reason != v1alpha1.ReasonDiscoveryIncomplete || !strings.HasPrefix(problems[0].Message, tc.want) {
				t.Errorf("got problems %+v and %v, want %q", problems, err, tc.want)
			}
		})
	}
}

// The order in which a cache lists objects changes nothing.
func TestDiscoveryDoesNotDependOnTheOrder(t *testing.T) {
	capacity := map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"}
	c, w := newWorld(t, machineDeployment("md-1", capacity), machineDeployment("md-2", capacity), machineDeployment("bad-1", nil), machineDeployment("bad-2", nil))
	c.clusters.Management = clusterOf{client: &unreadable{Client: w}}
	input := known(template(), 1)
	input.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
	before, problems, err := c.Types(t.Context(), input)
	if err != nil || len(before) != 2 || len(problems) != 2 {
		t.Fatalf("got %d types, problems %v and %v", len(before), problems, err)
	}
	if _, err := c.Refresh(t.Context(), input); err != nil {
		t.Fatal(err)
	}
	if after, _, _ := c.Types(t.Context(), input); &after[0] != &before[0] {
		t.Error("the types are computed again although nothing has changed")
	}
}
