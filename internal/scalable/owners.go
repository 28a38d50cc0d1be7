// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

const (
	kindMachineDeployment = "MachineDeployment"
	kindMachineSet        = "MachineSet"
	kindMachinePool       = "MachinePool"
)

// Owners finds Machines that another owner controls than the scalable resource in their labels. Users can
// edit these labels, also on Machines of a control plane, and the operator must not delete such Machines. It
// keeps what it has read, so that it is for one reconcile.
type Owners struct {
	clusters *clients.Clusters
	// deployments has the MachineDeployment of each MachineSet; empty if it has none.
	deployments map[string]string
}

// NewOwners returns Owners for one reconcile.
func NewOwners(clusters *clients.Clusters) *Owners {
	return &Owners{clusters: clusters, deployments: map[string]string{}}
}

// Foreign reports whether a Machine is of another Cluster, or another owner controls it than the scalable
// resource that its labels name. A Machine without a controller is not foreign: its MachineSet adopts it. Neither is one whose MachineSet the
// cache lacks, because the cache can be behind.
func (o *Owners) Foreign(ctx context.Context, machine *clusterv1.Machine) (bool, error) {
	if isOfOther(o.clusters, machine.Spec.ClusterName) {
		return true, nil
	}
	owner := metav1.GetControllerOfNoCopy(machine)
	if owner == nil {
		return false, nil
	}
	switch owner.Kind {
	case kindMachinePool:
		return owner.Name != machine.Labels[clusterv1.MachinePoolNameLabel], nil
	case kindMachineSet:
		deployment, known, err := o.deploymentOf(ctx, owner.Name)
		return known && deployment != machine.Labels[clusterv1.MachineDeploymentNameLabel], err
	default:
		return true, nil
	}
}

// deploymentOf returns the name of the MachineDeployment that controls a MachineSet; false if the cache lacks
// the MachineSet.
func (o *Owners) deploymentOf(ctx context.Context, name string) (deployment string, known bool, err error) {
	if deployment, known := o.deployments[name]; known {
		return deployment, true, nil
	}
	set := &clusterv1.MachineSet{}
	key := types.NamespacedName{Namespace: o.clusters.Cluster.Namespace, Name: name}
	if err := o.clusters.Management.GetClient().Get(ctx, key, set); err != nil {
		if apierrors.IsNotFound(err) {
			return "", false, nil
		}
		return "", false, fmt.Errorf("getting MachineSet %s: %w", key, err)
	}
	if owner := metav1.GetControllerOfNoCopy(set); owner != nil && owner.Kind == kindMachineDeployment {
		deployment = owner.Name
	}
	o.deployments[name] = deployment
	return deployment, true, nil
}

// OwnMachines returns the Machines that are not foreign.
func OwnMachines(ctx context.Context, clusters *clients.Clusters, machines []clusterv1.Machine) ([]clusterv1.Machine, error) {
	owners := NewOwners(clusters)
	own := make([]clusterv1.Machine, 0, len(machines))
	for i := range machines {
		foreign, err := owners.Foreign(ctx, &machines[i])
		if err != nil {
			return nil, err
		}
		if !foreign {
			own = append(own, machines[i])
		}
	}
	return own, nil
}

// isOfOther reports whether the spec.clusterName of an object is that of another Cluster. Caches select objects
// by their label. Cluster API's webhooks set the label to this name, which cannot be changed.
func isOfOther(clusters *clients.Clusters, name string) bool {
	return name != "" && name != clusters.Cluster.Name
}
