// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// countedWithin is how long the API server can take until it has what the watches have shown. Reading thousands of Nodes that exist
// beside the load takes countedPerStanding more for each of them, with everything that belongs to it.
const (
	countedWithin      = 30 * time.Second
	countedPerStanding = 30 * time.Millisecond
)

// checkUp checks that there is exactly one object of each kind for each Pod and, with this operator, that each Machine
// serves one claim and each claim has one Machine.
func (t *trial) checkUp(ctx context.Context) error {
	if err := t.checkCensus(ctx, "the end of the scale-up", t.standing+t.n); err != nil || t.component != stack.Operator {
		return err
	}
	machines, claims := &clusterv1.MachineList{}, &karpv1.NodeClaimList{}
	if err := errors.Join(t.Management.List(ctx, machines), t.Workload.List(ctx, claims)); err != nil {
		return err
	}
	return errors.Join(checkLinks(machines.Items, claims.Items), t.timeline.checkRelinks())
}

// checkDown checks that nothing of the load is left.
func (t *trial) checkDown(ctx context.Context) error {
	return t.checkCensus(ctx, "the end of the scale-down", t.standing)
}

// checkCensus checks that everything exists for that many Nodes, and nothing else. Scalable resources without replicas do not count.
func (t *trial) checkCensus(ctx context.Context, at string, n int) error {
	want := census.Census{Nodes: n}
	if t.component != "" {
		want.Pods, want.Running, want.Claims, want.Initialized = n, n, n, n
	}
	if t.component != stack.KarpenterKwok {
		want.Replicas, want.Machines, want.Instances = n, n, n
	}
	return t.Await(ctx, countedWithin+time.Duration(t.standing)*countedPerStanding, fmt.Sprintf("%s at %s", want, at), func(ctx context.Context) (bool, string, error) {
		found, err := census.Of(ctx, t.Workload, t.Management, client.MatchingLabels(podLabels))
		if err != nil {
			return false, err.Error(), nil
		}
		found.Resources = 0
		return found == want, found.String(), nil
	})
}

// checkLinks checks that each Machine is linked to one claim that exists, and has that claim's provider ID, and that no
// claim has two Machines.
func checkLinks(machines []clusterv1.Machine, claims []karpv1.NodeClaim) error {
	var errs []error
	ids := map[types.UID]string{}
	for i := range claims {
		ids[claims[i].UID] = claims[i].Status.ProviderID
	}
	servedBy := map[types.UID]string{}
	for i := range machines {
		machine := &machines[i]
		claim := lifecycle.ClaimUID(machine)
		id, exists := ids[claim]
		switch other := servedBy[claim]; {
		case !exists:
			errs = append(errs, fmt.Errorf("the Machine %s is linked to the claim %q, which does not exist", machine.Name, claim))
		case other != "":
			errs = append(errs, fmt.Errorf("the Machines %s and %s are linked to the same claim %s", other, machine.Name, claim))
		case id != machine.Spec.ProviderID:
			errs = append(errs, fmt.Errorf("the Machine %s has the provider ID %s, but its claim %s has %s", machine.Name, machine.Spec.ProviderID, claim, id))
		}
		servedBy[claim] = machine.Name
	}
	if len(machines) != len(claims) {
		errs = append(errs, fmt.Errorf("%d Machines serve %d claims", len(machines), len(claims)))
	}
	return errors.Join(errs...)
}

// checkRelinks checks that no Machine served two claims. In these runs no claim is deleted before it has a Node.
func (t *timeline) checkRelinks() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.relinks > 0 {
		return fmt.Errorf("%d links were changed to another claim", t.relinks)
	}
	return nil
}
