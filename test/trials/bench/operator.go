// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/workload"
)

// operator is this operator, with Cluster API and the simulated infrastructure.
var operator = variant{
	name:      "operator",
	component: stack.Operator,
	agent:     operatorAgent,
	prepare: func(ctx context.Context, t *trial) error {
		if err := t.createInfrastructure(ctx); err != nil {
			return err
		}
		return t.prepareKarpenter(ctx, operatorManifests, nodeClass{Group: v1alpha1.Group, Kind: "KarpenterMachineTemplate"})
	},
	scale:   scalePods,
	up:      []tallyName{podsRunning},
	settled: []tallyName{podsRunning, claimsPresent, claimsInitialized, machinesPresent, instancesPresent, nodesPresent, nodesReady},
}

// boot is how long a machine takes until it has its Node.
const boot = 3 * time.Second

// delays are the steps of a simulated machine, which gets its Node 3 s after its creation.
var delays = infrav1.Delays{
	Provisioning: delay(time.Second),
	ProviderID:   delay(time.Second),
	NodeJoin:     delay(boot - time.Second),
	Termination:  delay(time.Second),
}

func delay(duration time.Duration) infrav1.Delay {
	return infrav1.Delay{Duration: metav1.Duration{Duration: duration}}
}

// createInfrastructure creates the infrastructure machine template of all offerings.
func (t *trial) createInfrastructure(ctx context.Context) error {
	machines := &infrav1.SimulatedMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: "machines"}}
	machines.Spec.Template.Spec = infrav1.SimulatedMachineSpec{
		Capacity: workload.Capacity, Reserved: workload.Reserved, InstanceType: instanceType, Delays: delays,
	}
	if err := t.Management.Create(ctx, machines); err != nil {
		return fmt.Errorf("creating the infrastructure template: %w", err)
	}
	return nil
}
