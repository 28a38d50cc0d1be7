// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"sync/atomic"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

// scaling is a kind of scalable resource, and what creates Machines for its replicas.
type scaling struct {
	// name is the name of its runs.
	name string
	kind v1alpha1.ScalableResourceKind
	// base is the kind of the infrastructure's template.
	base string
	// peers act in each round.
	peers []func(*simulation)
	// provider is how the infrastructure treats replicas; it sees none of a MachineDeployment.
	provider model.PoolProvider

	// What was searched.
	scenarios, faulty, seeded atomic.Int32
	// jumped counts the runs in which a clock was set, and same those of them that had to end as a clean run.
	jumped, same atomic.Int32
	// lost counts the runs in which a Machine of a live claim was removed in a known way:
	// see ledger.
	lost atomic.Int32
}

var (
	machineDeployment = &scaling{
		name: "MachineDeployment", kind: v1alpha1.ScalableResourceKindMachineDeployment, base: infrastructureKind,
		peers: []func(*simulation){(*simulation).machineDeployments, (*simulation).machineSets, (*simulation).infrastructure},
	}
	// strictPool is a MachinePool with a provider that immediately replaces deleted instances.
	strictPool = &scaling{
		name: "MachinePool", kind: v1alpha1.ScalableResourceKindMachinePool, base: groupKind + "Template", peers: poolPeers,
	}
	// azurePool is one whose provider removes annotated instances before replicas are lowered.
	azurePool = &scaling{
		name: "MachinePool_like_Azure", kind: v1alpha1.ScalableResourceKindMachinePool, base: groupKind + "Template", peers: poolPeers,
		provider: model.PoolProvider{RemovesAnnotated: true},
	}

	poolPeers = []func(*simulation){(*simulation).machinePools, (*simulation).poolProvider, (*simulation).instances, (*simulation).poolMachines}

	scalings = []*scaling{machineDeployment, strictPool, azurePool}
	pools    = []*scaling{strictPool, azurePool}
	// In scenarios that mark Machines only when nothing else happens, or never, the two providers
	// of pools do the same.
	bothKinds = []*scaling{machineDeployment, strictPool}
	onePool   = []*scaling{strictPool}
)
