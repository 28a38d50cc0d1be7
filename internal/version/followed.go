// SPDX-License-Identifier: Apache-2.0

package version

import (
	"context"
	"fmt"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// Followed is the MachineDeployment that a template follows; zero if it follows none.
type Followed struct {
	// MachineDeployment is its name.
	MachineDeployment string
	// Version is that of its Machines; empty if they get none.
	Version string
	// OfTopology reports whether the topology of the Cluster upgrades it.
	OfTopology bool
}

// gives reports whether a resolved template has its version from the MachineDeployment.
func (f Followed) gives(template *v1alpha1.KarpenterMachineTemplate) bool {
	return f.Version != "" && f.Version == template.Spec.Template.Spec.Version
}

// readFollowed returns what a resolved template follows. It returns an error if that has changed since the
// template was resolved: the caller tries again with the template as it is then.
func readFollowed(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) (Followed, error) {
	if template.FromHash() == "" {
		return Followed{}, nil
	}
	taken, err := clusters.Taken(ctx, template)
	if err != nil {
		return Followed{}, err
	}
	if taken == nil || taken.Hash != template.FromHash() {
		return Followed{}, fmt.Errorf("MachineDeployment %s, which KarpenterMachineTemplate %s follows, has just changed: the operator tries again", template.Status.From.MachineDeployment, template.Name)
	}
	return Followed{MachineDeployment: taken.MachineDeployment, Version: taken.Spec.Version, OfTopology: taken.Entry != ""}, nil
}
