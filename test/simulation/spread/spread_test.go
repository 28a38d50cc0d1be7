// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/samber/lo"
	"k8s.io/utils/clock"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// largest returns the offering with the most claims, and their number.
func (w *world) largest() (catalog.Key, int) {
	w.Helper()
	claims := w.claims()
	counts := lo.CountValuesBy(claims, func(claim karpv1.NodeClaim) catalog.Key { return catalog.KeyOf(&claim) })
	keys := lo.Keys(counts)
	slices.SortFunc(keys, func(a, b catalog.Key) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.String(), b.String()))
	})
	return keys[0], counts[keys[0]]
}

// One spot pool ends after the other, always the one with the most Nodes. Without spec.spread all Pods are lost each time. With
// it, about one of as many as there are offerings.
func TestAPoolEnds(t *testing.T) {
	const pods, pools = 120, 3
	shares := map[bool][]float64{}
	for _, spread := range []bool{false, true} {
		m := market{capacityType: karpv1.CapacityTypeSpot, types: 3, zones: 3}
		if spread {
			m.spread = new(int32(20))
		}
		w := newWorld(t, m, nil)
		w.run(pods)
		for range pools {
			pool, _ := w.largest()
			shares[spread] = append(shares[spread], float64(w.end(pool))/pods)
		}
		if got := len(w.claims()); got != pods/podsOfNode {
			t.Errorf("%d Nodes run %d Pods, want %d", got, pods, pods/podsOfNode)
		}
	}
	for i := range pools {
		t.Logf("spot pool %d ends: %3.0f %% of the Pods are lost without spec.spread, %3.0f %% with it", i+1, 100*shares[false][i], 100*shares[true][i])
		if shares[false][i] != 1 {
			t.Errorf("without spec.spread, a share of %.2f is lost, want all: the test compares with nothing", shares[false][i])
		}
		// The weight of the cheapest offering is at most 1.16 times that of another one, and the last Node of each is rounded up.
		left := float64(9 - i)
		if most := 1.16 / left * (1 + (left-1)*podsOfNode/pods); shares[true][i] > most {
			t.Errorf("with spec.spread over %.0f offerings, a share of %.2f is lost, want at most %.2f", left, shares[true][i], most)
		}
	}
}

// Neither consolidation of single Nodes nor of several replaces a Node by one of a cheaper offering, if offerings take turns. It
// would, if core compared what is paid.
func TestConsolidationKeepsTheSpread(t *testing.T) {
	// For spot, core needs at least 15 cheaper instance types.
	for _, m := range []market{
		{capacityType: karpv1.CapacityTypeOnDemand, types: 18, zones: 1, spread: new(int32(20))},
		{capacityType: karpv1.CapacityTypeSpot, types: 18, zones: 1, spread: new(int32(20))},
	} {
		t.Run(string(m.capacityType), func(t *testing.T) {
			w := newWorld(t, m, nil)
			w.run(36 * podsOfNode)
			if _, most := w.largest(); most > 3 {
				t.Fatalf("%d of 36 Nodes have one of 18 offerings: they are not spread", most)
			}
			if got := w.consolidation(); len(got) > 0 {
				t.Errorf("got %d commands, want none: %v", len(got), got)
			}
			w = newWorld(t, m, func(provider cloudprovider.CloudProvider) cloudprovider.CloudProvider { return paid{provider, m} })
			w.run(36 * podsOfNode)
			if got := w.consolidation(); len(got) == 0 {
				t.Error("got no command although core compares what is paid: the test shows nothing")
			}
		})
	}
}

// paid is a CloudProvider that gives core the prices that are paid.
type paid struct {
	cloudprovider.CloudProvider
	market
}

func (p paid) GetInstanceTypes(ctx context.Context, pool *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	compared, err := p.CloudProvider.GetInstanceTypes(ctx, pool)
	if err != nil {
		return nil, err
	}
	prices := map[catalog.Key]float64{}
	types, problems := catalog.TypesOf(p.template(p.catalog()), nil, p.catalog())
	if len(problems) > 0 {
		panic(problems)
	}
	for i := range types {
		for j := range types[i].Offerings {
			prices[types[i].KeyOf(&types[i].Offerings[j])] = types[i].Offerings[j].Price
		}
	}
	return lo.Map(compared, func(it *cloudprovider.InstanceType, _ int) *cloudprovider.InstanceType {
		copied := &cloudprovider.InstanceType{}
		it.DeepCopyInto(copied)
		for _, o := range copied.Offerings {
			o.Price = prices[catalog.Key{InstanceType: it.Name, Zone: o.Zone(), CapacityType: o.CapacityType()}]
		}
		return copied
	}), nil
}

// consolidation returns what core's consolidation would do with more than empty Nodes.
func (w *world) consolidation() (commands []disruption.Command) {
	w.Helper()
	queue := disruption.NewQueue(w.client, silent{}, w.cluster, clock.RealClock{}, w.provisioner)
	consolidation := disruption.MakeConsolidation(clock.RealClock{}, w.cluster, w.client, w.provisioner, w.core, silent{}, queue)
	for _, method := range []disruption.Method{
		disruption.NewMultiNodeConsolidation(consolidation, disruption.WithValidator(immediate{})),
		disruption.NewSingleNodeConsolidation(consolidation, disruption.WithValidator(immediate{})),
	} {
		candidates, err := disruption.GetCandidates(w.ctx, w.cluster, w.client, silent{}, clock.RealClock{}, w.core, method.ShouldDisrupt, method.Class(), queue)
		w.must(err)
		if len(candidates) != len(w.claims()) {
			w.Fatalf("core considers %d of %d Nodes", len(candidates), len(w.claims()))
		}
		found, err := method.ComputeCommands(w.ctx, map[string]int{poolName: len(candidates)}, candidates...)
		w.must(err)
		commands = append(commands, found...)
	}
	return commands
}

// immediate accepts commands. Core's own validator waits for 15 seconds.
type immediate struct{}

func (immediate) Validate(_ context.Context, command disruption.Command, _ time.Duration) (disruption.Command, error) {
	return command, nil
}
