// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// View is what both clusters had at one time. Lists are sorted by age and name.
type View struct {
	// Now is the time of the view.
	Now time.Time
	// Cluster is nil if it does not exist.
	Cluster *clusterv1.Cluster
	// NodePools are those whose NodeClass is a template.
	NodePools []karpv1.NodePool
	Templates []v1alpha1.KarpenterMachineTemplate
	Catalogs  []v1alpha1.InstanceTypeCatalog
	// Claims are those whose NodeClass is a template.
	Claims    []karpv1.NodeClaim
	Nodes     []corev1.Node
	Resources []*scalable.Resource
	// Machines are all Machines of the Cluster, including those of the control plane.
	Machines []clusterv1.Machine

	// These find objects without a search: some commands look at all of them.
	claims   map[string]*karpv1.NodeClaim
	owners   map[types.UID]*karpv1.NodeClaim
	nodes    map[string]*corev1.Node
	machines map[string]*clusterv1.Machine
	linked   map[types.UID][]*clusterv1.Machine

	clusters *clients.Clusters
	catalog  *catalog.Catalog
	types    map[string]map[catalog.Key]catalog.Offering
	plans    map[string]*Plan
	lease    *Lease
	operator *Operator
	// kindsUnknown is why the kinds of providers are not known; nil if they are, or if that was not tried.
	kindsUnknown error
}

// Served returns the namespace and name of the Cluster, whether or not it exists.
func (v *View) Served() types.NamespacedName { return v.clusters.Cluster }

// Template returns a template by its name; nil if it does not exist.
func (v *View) Template(name string) *v1alpha1.KarpenterMachineTemplate {
	return find(v.Templates, name)
}

// NodePool returns a NodePool of a template by its name; nil if it does not exist.
func (v *View) NodePool(name string) *karpv1.NodePool { return find(v.NodePools, name) }

// Claim returns a NodeClaim of a template by its name; nil if it does not exist.
func (v *View) Claim(name string) *karpv1.NodeClaim { return v.claims[name] }

// Node returns a Node by its name; nil if it does not exist.
func (v *View) Node(name string) *corev1.Node { return v.nodes[name] }

// Machine returns a Machine by its name; nil if it does not exist.
func (v *View) Machine(name string) *clusterv1.Machine { return v.machines[name] }

// Resource returns a scalable resource by its name; nil if it does not exist.
func (v *View) Resource(name string) *scalable.Resource {
	found, _ := lo.Find(v.Resources, func(r *scalable.Resource) bool { return r.GetName() == name })
	return found
}

func find[T any, O interface {
	*T
	metav1.Object
}](objects []T, name string) O {
	for i := range objects {
		if O(&objects[i]).GetName() == name {
			return &objects[i]
		}
	}
	return nil
}

// MachinesOf returns the Machines of each scalable resource, by its name.
func (v *View) MachinesOf() map[string][]*clusterv1.Machine {
	return lo.GroupBy(lo.ToSlicePtr(v.Machines), func(machine *clusterv1.Machine) string { return clients.ResourceOf(machine) })
}

// ClaimsOf returns the NodeClaims of a NodePool; those without a NodePool if the name is empty.
func (v *View) ClaimsOf(nodePool string) []*karpv1.NodeClaim {
	return lo.FilterMap(v.Claims, func(_ karpv1.NodeClaim, i int) (*karpv1.NodeClaim, bool) {
		return &v.Claims[i], v.Claims[i].Labels[karpv1.NodePoolLabelKey] == nodePool
	})
}

// MachineOf returns the Machine that serves a NodeClaim, or else one that served it and is leaving; nil if there is none.
func (v *View) MachineOf(claim *karpv1.NodeClaim) *clusterv1.Machine {
	linked := v.linked[claim.UID]
	read := lo.Map(linked, func(machine *clusterv1.Machine, _ int) planner.Machine { return snapshot.MachineOf(machine) })
	if serving, found := planner.ServedBy(claim.Status.ProviderID, read); found {
		return v.Machine(serving.Name)
	}
	return lo.FirstOrEmpty(linked)
}

// ClaimOf returns the NodeClaim that a Machine is linked to; nil if there is none.
func (v *View) ClaimOf(machine *clusterv1.Machine) *karpv1.NodeClaim {
	return v.owners[lifecycle.ClaimUID(machine)]
}

// NodeOf returns the Node of a NodeClaim and of its Machine; nil if it has none. The Machine may be nil.
func (v *View) NodeOf(claim *karpv1.NodeClaim, machine *clusterv1.Machine) *corev1.Node {
	if claim != nil && claim.Status.NodeName != "" {
		return v.Node(claim.Status.NodeName)
	}
	if machine != nil && machine.Status.NodeRef.IsDefined() {
		return v.Node(machine.Status.NodeRef.Name)
	}
	return nil
}

// ClaimOfNode returns the NodeClaim of a Node; nil if none has it.
func (v *View) ClaimOfNode(node *corev1.Node) *karpv1.NodeClaim {
	for i := range v.Claims {
		if c := &v.Claims[i]; c.Status.NodeName == node.Name || node.Spec.ProviderID != "" && c.Status.ProviderID == node.Spec.ProviderID {
			return c
		}
	}
	return nil
}

// MachineOfNode returns the Machine of a Node; nil if none has it.
func (v *View) MachineOfNode(node *corev1.Node) *clusterv1.Machine {
	for i := range v.Machines {
		if v.Machines[i].Status.NodeRef.Name == node.Name {
			return &v.Machines[i]
		}
	}
	return nil
}

// Offering returns what a template offers for a key, with its price; false if it does not offer that, or cannot be read.
func (v *View) Offering(ctx context.Context, template string, key catalog.Key) (catalog.Offering, bool) {
	known, read := v.types[template]
	if !read {
		known = map[catalog.Key]catalog.Offering{}
		if found := v.Template(template); found != nil {
			types, _, _ := v.catalog.Types(ctx, found) // without the types, no price is known
			for i := range types {
				for _, offering := range types[i].Offerings {
					if !offering.Retired {
						known[types[i].KeyOf(&offering)] = offering
					}
				}
			}
		}
		v.types[template] = known
	}
	offering, offered := known[key]
	return offering, offered
}

// CurrencySeparator is between the currencies that Currencies returns.
const CurrencySeparator = ", "

// Currencies returns which currencies prices have, each once; empty if none is known.
func Currencies(of ...string) string {
	known := lo.Uniq(lo.Compact(of))
	slices.Sort(known)
	return strings.Join(known, CurrencySeparator)
}

// Sum adds prices, rounded to what catalogs can say.
func Sum(prices ...float64) float64 { return math.Round(lo.Sum(prices)*1e6) / 1e6 }

// Price returns the price of a NodeClaim's offering for an hour; false if it is not known.
func (v *View) Price(ctx context.Context, claim *karpv1.NodeClaim) (float64, bool) {
	offering, known := v.Offering(ctx, claim.Spec.NodeClassRef.Name, catalog.KeyOf(claim))
	return offering.Price, known
}

// InstanceTypes returns the instance types with which Karpenter schedules for a template and a NodePool. Without a NodePool,
// no offering is closed because a NodePool lacks its taints.
func (v *View) InstanceTypes(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, pool *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	if pool == nil {
		return v.catalog.InstanceTypes(ctx, template, v.Now)
	}
	return v.catalog.InstanceTypesFor(ctx, template, catalog.DemandOf(pool), v.Now)
}

// Plan is what the operator decides about a scalable resource.
type Plan struct {
	planner.Plan
	// Snapshot is nil if the operator decides nothing: the Cluster or the resource is paused or does not exist.
	Snapshot *snapshot.Snapshot
}

// Plan returns what the operator would decide now about the scalable resource with a name.
func (v *View) Plan(ctx context.Context, resource string) (*Plan, error) {
	if plan, known := v.plans[resource]; known {
		return plan, nil
	}
	read, err := snapshot.Read(ctx, v.clusters, v.catalog, resource, v.Now, snapshot.Known{})
	if err != nil {
		return nil, err
	}
	plan := &Plan{Snapshot: read}
	if read != nil {
		plan.Plan = planner.Decide(&read.State)
	}
	v.plans[resource] = plan
	return plan, nil
}

// Changed returns why a scalable resource is suspended: what was changed by hand, or that another controller sets its
// replicas; empty if it is not.
func (v *View) Changed(ctx context.Context, resource *scalable.Resource) (string, error) {
	suspended, err := resource.Suspended(ctx, v.clusters)
	if err != nil || !suspended || resource.Paused() {
		return "", err
	}
	changed, err := scalable.Changed(ctx, v.clusters, resource)
	return cmp.Or(changed, string(planner.ControlledByOthers)), err
}

// HealthChecks returns the MachineHealthChecks of the Cluster.
func (v *View) HealthChecks(ctx context.Context) ([]clusterv1.MachineHealthCheck, error) {
	list := &clusterv1.MachineHealthCheckList{}
	if err := v.clusters.Management.GetAPIReader().List(ctx, list, client.InNamespace(v.clusters.Cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	return byAge(lo.Filter(list.Items, func(c clusterv1.MachineHealthCheck, _ int) bool { return c.Spec.ClusterName == v.clusters.Cluster.Name })), nil
}
