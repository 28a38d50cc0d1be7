// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
)

// Snapshot is one scalable resource with its claims and Machines, as the caches have them. Claims, Machines and the
// template are shared with the caches: they are copied before they are changed.
type Snapshot struct {
	// Name of the resource.
	Name string
	// Resource is nil if no resource of that name exists.
	Resource *scalable.Resource
	// Template of the resource; nil if it no longer exists.
	Template *v1alpha1.KarpenterMachineTemplate
	// Settings of the template.
	Settings settings.Settings
	// Claims that name the resource.
	Claims []karpv1.NodeClaim
	// Machines of the resource by name.
	Machines map[string]*clusterv1.Machine
	// Ending reports whether the resource or its MachineSet is being deleted. Then it creates no Machines until the
	// present ones no longer exist.
	Ending bool
	// State is what the planner decides from.
	State planner.State

	// indexes are built when they are first used.
	indexes *indexes
}

// Known is what a process knows and its caches may lack. The zero value is nothing.
type Known struct {
	// Machines returns the Machines of a resource, each in the latest known version, given those of the cache.
	Machines func(ctx context.Context, resource string, cached []clusterv1.Machine) ([]clusterv1.Machine, error)
	// Open has the Machine of each claim whose link is being written, by their UIDs. It must have been determined
	// before Read is called: what was written to others is in the caches, or Machines returns it.
	Open map[types.UID]types.UID
	// ProgressedAt is when a Machine of another resource last progressed.
	ProgressedAt time.Time
}

// Read reads a scalable resource from the caches. It returns nil if nothing
// may be done: the Cluster or the resource is paused, the Cluster does not exist, or this operator
// neither generated nor adopted the resource, whichever claim names it.
func Read(ctx context.Context, clusters *clients.Clusters, catalog *catalog.Catalog, name string, now time.Time, known Known) (*Snapshot, error) {
	management := clusters.Management.GetClient()
	cluster := &clusterv1.Cluster{}
	if err := management.Get(ctx, clusters.Cluster, cluster); err != nil {
		return nil, client.IgnoreNotFound(fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err))
	}
	if lo.FromPtr(cluster.Spec.Paused) {
		return nil, nil
	}
	snap := &Snapshot{Name: name, State: stateOf(clusters, now)}
	snap.State.ClusterDeleting = !cluster.DeletionTimestamp.IsZero()
	resource, err := scalable.Get(ctx, clusters, name)
	if err != nil {
		return nil, err
	}
	if resource != nil {
		if _, generated := resource.GetLabels()[v1alpha1.TemplateLabel]; !generated {
			return nil, nil
		}
		if resource.Paused() && (!snap.State.ClusterDeleting || annotations.HasPaused(resource)) {
			return nil, nil
		}
		if snap.State.Suspended, err = resource.Suspended(ctx, clusters); err != nil {
			return nil, err
		}
		snap.Resource = resource
	}
	if err := snap.read(ctx, clusters, catalog, known); err != nil {
		return nil, err
	}
	return snap, nil
}

// stateOf returns a state of no resource.
func stateOf(clusters *clients.Clusters, now time.Time) planner.State {
	timings := cmp.Or(clusters.Timings, clients.ProductionTimings())
	return planner.State{
		Now: now, UpSince: now.Add(-clusters.Up()),
		Durations: planner.Durations{NoProgress: timings.NoProgress, Settle: timings.Settle, ReadyPoll: timings.ReadyPoll, Probe: timings.Probe},
	}
}

// setSettings sets the durations of the template.
func setSettings(state *planner.State, of settings.Settings) {
	state.Durations.LaunchTimeout, state.Durations.SpareTTL = of.LaunchTimeout, of.SpareTTL
}

// read reads what belongs to the resource.
func (s *Snapshot) read(ctx context.Context, clusters *clients.Clusters, known *catalog.Catalog, links Known) error {
	claims := &karpv1.NodeClaimList{}
	if err := clusters.Workload.GetClient().List(ctx, claims, client.MatchingFields{clients.NodeClaimResourceField: s.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the NodeClaims of scalable resource %s: %w", s.Name, err)
	}
	s.Claims = claims.Items
	// After the claims, so that a claim never has the provider ID of a Machine that seems to have none.
	if err := s.readMachines(ctx, clusters, links); err != nil {
		return err
	}
	var err error
	if s.Template, err = clusters.SharedTemplate(ctx, s.templateName()); err != nil {
		return err
	}
	s.Settings = settings.Of(s.Template)
	setSettings(&s.State, s.Settings)
	if err := s.setResource(ctx, clusters); err != nil {
		return err
	}
	if err := s.setClaims(ctx, clusters, known); err != nil {
		return err
	}
	if err := s.setMachines(ctx, clusters, links); err != nil {
		return err
	}
	if s.kind().HasMachineSets() {
		return s.readMachineSets(ctx, clusters)
	}
	return s.readPool(ctx, clusters)
}

// setResource sets what the resource itself shows.
func (s *Snapshot) setResource(ctx context.Context, clusters *clients.Clusters) (err error) {
	state := &s.State
	state.Kind, state.Name, state.Hash = string(s.kind().Name()), s.Name, s.hash()
	if s.Template != nil {
		state.Template = s.Template.Name
	}
	if s.Resource == nil {
		state.Stall = silence("no %s %s exists yet: see the events of the NodeClaim", state.Kind, s.Name)
		return nil
	}
	state.Exists, state.Key, state.Replicas = true, s.Resource.Key().String(), s.Resource.Replicas()
	state.UnmanagedUntil, state.Unmanaged = scalable.Adoption(s.Resource)
	state.ResumedAt = resumedAt(s.Resource.Conditions())
	state.Problem = conditionOf(conditions.Get(s.Resource.Conditions(), clusterv1.ScalingUpCondition)).String()
	state.Unusable, err = scalable.Unusable(ctx, clusters, s.Resource)
	return err
}

// hash returns the hash of the resource. Before it exists, that is the hash of the oldest claim, for which it is
// created.
func (s *Snapshot) hash() string {
	if s.Resource != nil {
		return s.Resource.GetLabels()[v1alpha1.TemplateHashLabel]
	}
	if len(s.Claims) == 0 {
		return ""
	}
	oldest := slices.MinFunc(s.Claims, func(a, b karpv1.NodeClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return oldest.Annotations[v1alpha1.TemplateHashAnnotation]
}

// kind returns the kind of the resource, also if the resource does not exist yet.
func (s *Snapshot) kind() scalable.Kind {
	switch {
	case s.Resource != nil:
		return s.Resource.Kind()
	case s.Template != nil:
		return scalable.KindOf(s.Template.Spec.ScalableResource)
	default:
		return scalable.Kinds()[0]
	}
}

// templateName returns the name of the resource's template, also if only a claim exists yet, or only
// a Machine is left.
func (s *Snapshot) templateName() string {
	if s.Resource != nil {
		return s.Resource.GetLabels()[v1alpha1.TemplateLabel]
	}
	if len(s.Claims) > 0 {
		return lo.FromPtr(s.Claims[0].Spec.NodeClassRef).Name
	}
	for _, machine := range s.Machines {
		if name := machine.Labels[v1alpha1.TemplateLabel]; name != "" {
			return name
		}
	}
	return ""
}
