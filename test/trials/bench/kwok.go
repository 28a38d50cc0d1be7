// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// kwok is Karpenter with its own simulated provider, which creates Nodes and no machines. It shows how long Karpenter
// takes without Cluster API.
var kwok = variant{
	name:      "kwok",
	component: stack.KarpenterKwok,
	agent:     "karpenter",
	prepare: func(ctx context.Context, t *trial) error {
		return t.prepareKarpenter(ctx, kwokManifests, nodeClass{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"})
	},
	scale:   scalePods,
	up:      []tallyName{podsRunning},
	settled: []tallyName{podsRunning, claimsPresent, claimsInitialized, nodesPresent, nodesReady},
}
