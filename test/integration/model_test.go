// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
)

// The simulation of plans and the crash search use test/harness/model for Cluster API's decisions. These
// specs compare it with the real reconcilers.
var _ = Describe("The model of Cluster API", long, func() {
	It("predicts the Machines of random scripts, seeds 0 to 5", func(ctx SpecContext) {
		// Cluster API takes some time for each step, so the scripts run in parallel.
		var running sync.WaitGroup
		for seed := range int64(6) {
			if !rotation.Turn(3, int(seed)) {
				continue
			}
			running.Go(func() {
				defer GinkgoRecover()
				random := rand.New(rand.NewSource(seed))
				m := newModelled(ctx, fmt.Sprintf("model-%d", seed), nil)
				// Two pairs of healthy Machines, so that there is an older and a younger one.
				for _, replicas := range []int32{2, 4} {
					m.step(ctx, fmt.Sprintf("raise to %d", replicas), func() { m.setReplicas(ctx, replicas) })
					m.step(ctx, "let the Nodes join", func() { m.joinAll(ctx) })
				}
				for range 6 {
					operation := m.operation(ctx, random)
					m.step(ctx, operation.name, operation.do)
				}
				env.caughtUp(ctx, m.Name)
				Expect(m.machines(ctx)).To(ConsistOf(m.before))
			})
		}
		running.Wait()
	})

	It("predicts that one more Machine takes as many steps as Machines are being deleted", func(ctx SpecContext) {
		m := newModelled(ctx, "model-steps", nil)
		m.step(ctx, "start with 4", func() { m.setReplicas(ctx, 4) })
		for _, machine := range m.before {
			m.hold(ctx, machine.Name)
		}
		m.step(ctx, "lower to 0", func() { m.setReplicas(ctx, 0) })
		given := m.watchMachineSet(ctx)
		m.step(ctx, "raise to 5", func() { m.setReplicas(ctx, 5) })
		want, replicas := []int32{}, int32(0)
		for replicas < 5 {
			replicas = model.MachineDeployment(5, replicas, 4)
			want = append(want, replicas)
		}
		Expect(want).To(HaveLen(5))
		Expect(given()).To(Equal(want))
	})
})

// operation is one step of a script.
type operation struct {
	name string
	do   func()
}

// operation returns an operation that is possible now.
func (m *modelled) operation(ctx context.Context, random *rand.Rand) operation {
	GinkgoHelper()
	pick := func(which func(model.Machine) bool) (string, bool) {
		names := lo.FilterMap(m.before, func(machine model.Machine, _ int) (string, bool) { return machine.Name, which(machine) })
		if len(names) == 0 {
			return "", false
		}
		slices.Sort(names)
		return names[random.Intn(len(names))], true
	}
	live := func(machine model.Machine) bool { return !machine.Deleting }
	var possible []operation
	add := func(name string, do func()) { possible = append(possible, operation{name, do}) }

	if raised := m.replicas + 1 + random.Int31n(3); raised <= 7 {
		add(fmt.Sprintf("raise to %d", raised), func() { m.setReplicas(ctx, raised) })
	}
	if m.replicas > 0 {
		lowered := m.replicas - 1 - random.Int31n(min(2, m.replicas))
		// More likely than the others: it decides which Machines are deleted.
		for range 3 {
			add(fmt.Sprintf("lower to %d", lowered), func() { m.setReplicas(ctx, lowered) })
		}
	}
	if name, found := pick(func(machine model.Machine) bool { return live(machine) && !machine.DeleteAnnotation }); found {
		add("annotate "+name, func() { env.annotate(ctx, machineNamed(name), clusterv1.DeleteMachineAnnotation, new("")) })
	}
	if name, found := pick(live); found {
		add("delete "+name, func() { env.delete(ctx, machineNamed(name)) })
		add("delete and hold "+name, func() { m.hold(ctx, name); env.delete(ctx, machineNamed(name)) })
	}
	if name, found := pick(func(machine model.Machine) bool { return machine.Deleting }); found {
		add("release "+name, func() { m.release(ctx, name) })
	}
	if name, found := pick(func(machine model.Machine) bool { return live(machine) && !machine.Healthy }); found {
		add("let the Node join of "+name, func() { m.join(ctx, name) })
	}
	return possible[random.Intn(len(possible))]
}
