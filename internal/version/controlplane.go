// SPDX-License-Identifier: Apache-2.0

package version

import (
	"context"
	"errors"
	"fmt"

	"github.com/blang/semver/v4"
	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/version"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// ControlPlane is what the control plane of a Cluster and the topology of the Cluster report about
// versions.
type ControlPlane struct {
	// Kind is the kind of the control plane; empty if the Cluster refers to none that Cluster API
	// can use.
	Kind schema.GroupVersionKind
	// Name is the kind and the name, for messages; empty if it does not exist.
	Name string
	// Version is the version that the control plane should have; empty if its kind reports none.
	Version string
	// Running are the versions that it has, which differ from Version during an upgrade.
	Running []string
	// Topology is the version of the Cluster's topology; empty without a topology.
	Topology string
}

// Read reads from the cache of the management cluster what decides the version of the Machines of a resolved
// template, besides the template itself.
func Read(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate) (ControlPlane, Followed, error) {
	followed, err := readFollowed(ctx, clusters, template)
	if err != nil {
		return ControlPlane{}, Followed{}, err
	}
	controlPlane, err := readControlPlane(ctx, clusters)
	return controlPlane, followed, err
}

// readControlPlane reads the control plane of the served Cluster. A Cluster or a control plane that does not
// exist reports no version.
func readControlPlane(ctx context.Context, clusters *clients.Clusters) (ControlPlane, error) {
	cluster, err := clusters.Cached(ctx)
	if err != nil || cluster == nil {
		return ControlPlane{}, err
	}
	unknown := ControlPlane{Topology: cluster.Spec.Topology.Version}
	ref := cluster.Spec.ControlPlaneRef
	if !ref.IsDefined() {
		return unknown, nil
	}
	management := clusters.Management.GetClient()
	kind, err := reference.Kind(ctx, management, ref.GroupKind())
	if unusable := reference.Unusable(""); errors.As(err, &unusable) {
		return unknown, nil
	}
	if err != nil {
		return ControlPlane{}, err
	}
	unknown.Kind = kind
	object, err := reference.Get(ctx, management, ref, clusters.Cluster.Namespace)
	if apierrors.IsNotFound(err) {
		return unknown, nil
	}
	if err != nil {
		return ControlPlane{}, fmt.Errorf("getting the control plane of Cluster %s: %w", clusters.Cluster, err)
	}
	return controlPlaneOf(cluster, object)
}

// controlPlaneOf reads the fields of Cluster API's contract for control planes (Cluster API:
// docs/book/src/developer/providers/contracts/control-plane.md).
func controlPlaneOf(cluster *clusterv1.Cluster, object *unstructured.Unstructured) (ControlPlane, error) {
	should, _, err := unstructured.NestedString(object.Object, "spec", "version")
	has, _, statusErr := unstructured.NestedString(object.Object, "status", "version")
	list, _, listErr := unstructured.NestedSlice(object.Object, "status", "versions")
	if err := errors.Join(err, statusErr, listErr); err != nil {
		return ControlPlane{}, fmt.Errorf("reading the version of %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	running := lo.FilterMap(list, func(item any, _ int) (string, bool) {
		fields, _ := item.(map[string]any)
		version, is := fields["version"].(string)
		return version, is
	})
	if len(running) == 0 {
		running = lo.Compact([]string{has})
	}
	return ControlPlane{
		Kind: object.GroupVersionKind(), Name: object.GetKind() + " " + object.GetName(),
		Version: should, Running: running, Topology: cluster.Spec.Topology.Version,
	}, nil
}

// Changing returns what still happens to the version of the control plane; empty if it is done. It
// decides like Cluster API's preflight check ControlPlaneIsStable (Cluster API:
// internal/contract/controlplane.go, IsProvisioning and IsUpgrading). Unlike that, a Cluster that is
// upgraded by several minor versions is done only at the last one.
func (c ControlPlane) Changing() string {
	if c.Version == "" {
		return ""
	}
	if c.Topology != "" && c.Topology != c.Version {
		return fmt.Sprintf("%s is at %s on the way to version %s of the Cluster's topology", c.Name, c.Version, c.Topology)
	}
	if len(c.Running) == 0 {
		return fmt.Sprintf("%s does not report a version yet", c.Name)
	}
	should, err := semver.ParseTolerant(c.Version)
	if err != nil {
		return ""
	}
	for _, running := range c.Running {
		if has, err := semver.ParseTolerant(running); err == nil && version.Compare(should, has, version.WithBuildTags()) > 0 {
			return fmt.Sprintf("%s is being upgraded from %s to %s", c.Name, running, c.Version)
		}
	}
	return ""
}
