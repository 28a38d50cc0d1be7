// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/inventory"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// inventories are the limits that follow from what capacityFrom of offerings counts. The zero value has none.
type inventories struct {
	// pools are those of the template's own offerings, and all has each of them once.
	pools map[Key][]inventory.Pool
	all   []inventory.Pool
	// late reports whether Machines can be later than what they consume, as those of MachinePools are.
	late bool

	// othersPools are the pools of the offerings of all templates, by the name of the template.
	othersPools map[string]map[Key][]inventory.Pool
	counts      map[inventory.Pool]inventory.Count
	unknown     map[inventory.Pool]error
	machines    []inventory.Machine
	// served are the claims with a Machine.
	served sets.Set[types.UID]
}

func inventoriesOf(template *v1alpha1.KarpenterMachineTemplate, types []Type) inventories {
	found := inventories{pools: map[Key][]inventory.Pool{}, late: template.Spec.ScalableResource.Kind == v1alpha1.ScalableResourceKindMachinePool}
	for i := range types {
		for j := range types[i].Offerings {
			if o := &types[i].Offerings[j]; len(o.Pools) > 0 {
				found.pools[types[i].KeyOf(o)] = o.Pools
				found.all = append(found.all, o.Pools...)
			}
		}
	}
	found.all = lo.Uniq(found.all)
	return found
}

// Counted reports whether capacityFrom limits an offering of the template.
func (i inventories) Counted() bool { return len(i.pools) > 0 }

// readInventories adds what is counted now, and who else takes from it.
func (c *Catalog) readInventories(ctx context.Context, limits *Limits) error {
	if len(limits.pools) == 0 || c.inventory == nil {
		return nil
	}
	limits.counts, limits.unknown = c.inventory.Counts(ctx, limits.all)
	limits.othersPools = map[string]map[Key][]inventory.Pool{limits.owner: limits.pools}
	for name, template := range limits.others {
		if name == limits.owner {
			continue
		}
		e, err := c.entry(ctx, template)
		if err != nil {
			return err
		}
		limits.othersPools[name] = e.limits.pools
		e.mu.Unlock()
	}
	machines := &clusterv1.MachineList{}
	if err := c.clusters.Management.GetClient().List(ctx, machines, client.InNamespace(c.clusters.Cluster.Namespace), client.HasLabels{v1alpha1.TemplateLabel}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Machines: %w", err)
	}
	limits.addMachines(machines.Items)
	return nil
}

// addMachines adds the Machines of the served Cluster.
func (i *inventories) addMachines(machines []clusterv1.Machine) {
	i.served = sets.New[types.UID]()
	for n := range machines {
		machine := &machines[n]
		claim := lifecycle.ClaimUID(machine)
		if claim != "" {
			i.served.Insert(claim)
		}
		if lifecycle.IsLeaving(machine) {
			continue
		}
		labels := machine.Labels
		of := offeringOf{labels[v1alpha1.TemplateLabel], Key{InstanceType: labels[v1alpha1.InstanceTypeLabel], Zone: labels[v1alpha1.ZoneLabel], CapacityType: labels[v1alpha1.CapacityTypeLabel]}}
		pools := i.othersPools[of.template][of.Key]
		if len(pools) == 0 {
			continue
		}
		i.machines = append(i.machines, inventory.Machine{
			Offering: of.String(), Pools: pools, Names: lo.Compact([]string{machine.Name, machine.Spec.InfrastructureRef.Name}),
			Provisioned: machine.Spec.ProviderID != "" || lo.FromPtr(machine.Status.Initialization.InfrastructureProvisioned),
			Linked:      claim != "",
		})
	}
}

// String identifies an offering of a template.
func (o offeringOf) String() string { return o.template + "/" + o.Key.String() }

// ledger returns what is left without the claims.
func (i inventories) ledger() *inventory.Ledger { return inventory.NewLedger(i.counts, i.machines) }

// take subtracts a claim that has no Machine yet from the inventories.
func (u *Usage) take(key Key, claim *karpv1.NodeClaim) {
	of := offeringOf{claim.Spec.NodeClassRef.Name, key}
	if pools := u.limits.othersPools[of.template][key]; len(pools) > 0 && u.limits.waits(claim) {
		u.ledger.Take(of.String(), pools)
	}
}

// waits reports whether a claim will get a Machine and has none.
func (i inventories) waits(claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp.IsZero() && !nodeclaims.IsRegistered(claim) && !i.served.Has(claim.UID)
}

// lacks reports whether nothing is left for a claim without a Machine. Before a Machine of a MachinePool exists, its instance can
// have consumed what is counted.
func (u Usage) lacks(claim *karpv1.NodeClaim) bool {
	left, counted := u.left(KeyOf(claim))
	return counted && left <= 0 && !u.limits.late && u.limits.waits(claim)
}

// left returns how many more claims of an offering can get a Machine, and false if that is not counted.
func (u Usage) left(key Key) (int64, bool) {
	pools := u.limits.pools[key]
	if len(pools) == 0 {
		return 0, false
	}
	return u.ledger.Left(offeringOf{u.limits.owner, key}.String(), pools)
}

// withCounted returns limited offerings with those whose capacity is counted. Of several limits, it has the lowest.
func (u Usage) withCounted(limited []v1alpha1.LimitedOffering) []v1alpha1.LimitedOffering {
	if len(u.limits.pools) == 0 {
		return limited
	}
	known := lo.Reject(limited, func(o v1alpha1.LimitedOffering, _ int) bool {
		_, counted := u.left(KeyOfLimited(o))
		return counted
	})
	for key, pools := range u.limits.pools {
		left, counted := u.left(key)
		if !counted {
			continue
		}
		o := v1alpha1.LimitedOffering{InstanceType: key.InstanceType, Zone: key.Zone, CapacityType: key.CapacityType, NodeClaims: u.offerings[key]}
		o.Limit = o.NodeClaims + int32(min(max(0, left), math.MaxInt32/2))
		if most := u.limits.offerings[key].max; most != nil {
			o.Limit = min(o.Limit, *most)
		}
		if left <= 0 {
			o.Message = budget.Text(u.ledger.Describe(pools), budget.Mark)
		}
		known = append(known, o)
	}
	return known
}

// usedUp returns the offerings of which nothing is left, sorted.
func (u Usage) usedUp() []Key {
	keys := lo.Filter(lo.Keys(u.limits.pools), func(key Key, _ int) bool {
		left, counted := u.left(key)
		return counted && left <= 0
	})
	slices.SortFunc(keys, compareKeys)
	return keys
}

// Uncounted returns why the capacity of offerings is not counted. Their offerings are not closed.
func (c *Catalog) Uncounted(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) ([]Problem, error) {
	limits, err := c.Limits(ctx, template)
	if err != nil {
		return nil, err
	}
	messages := lo.Uniq(lo.FilterMap(lo.Entries(limits.unknown), func(unknown lo.Entry[inventory.Pool, error], _ int) (string, bool) {
		return fmt.Sprintf("capacityFrom: %s are not counted: %s", unknown.Key, unknown.Value), !errors.Is(unknown.Value, inventory.ErrStarting)
	}))
	slices.SortFunc(messages, cmp.Compare)
	return lo.Map(messages, func(message string, _ int) Problem { return Problem{v1alpha1.ReasonCapacityNotCounted, message} }), nil
}

// Inventories returns the watches of what capacityFrom of offerings counts; nil if nothing is counted.
func (c *Catalog) Inventories() *inventory.Watches { return c.inventory }

// WithInventories makes the Catalog count what capacityFrom of offerings names.
func (c *Catalog) WithInventories(watches *inventory.Watches) *Catalog {
	c.inventory = watches
	return c
}
