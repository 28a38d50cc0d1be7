// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
)

// Snapshot is one scalable resource with its claims and Machines, as the caches have them. Claims and
// Machines are shared with the caches: they are copied before they are changed.
type Snapshot struct {
	// Name of the resource.
	Name string
	// Now is the time of the snapshot.
	Now time.Time
	// Ending reports whether the resource creates no Machines until those that it has no longer exist,
	// because it or its MachineSet is being deleted.
	Ending bool
	// ClusterDeleting reports whether the Cluster is being deleted. Then no Machines are requested.
	ClusterDeleting bool
	// Suspended reports whether the operator decides nothing about the resource, because Cluster
	// API rolls it out or another controller sets its replicas. These also delete Machines: then
	// the claims end, and the hooks of the operator must not block the deletion.
	Suspended bool
	// Unsettled reports whether the provider of a MachinePool may not have recovered from a disturbance of
	// the management cluster.
	Unsettled bool
	// UpSince is the time since which both clusters have been reachable; years before Now if they always were.
	// No timer of a launch runs before.
	UpSince time.Time
	// Resource is nil if no resource of that name exists.
	Resource *scalable.Resource
	// Template of the resource; nil if it no longer exists.
	Template *v1alpha1.KarpenterMachineTemplate
	// Settings of the template.
	Settings settings.Settings
	// Claims that name the resource.
	Claims []karpv1.NodeClaim
	// Settled are those of the claims whose link is neither being written nor planned. What the Machines of the
	// others show can be older than what the claims have from them.
	Settled []*karpv1.NodeClaim
	// Machines of the resource by name.
	Machines map[string]*clusterv1.Machine
	// Stalls has why the launches of settled claims are stalled, and Failures why their machines could not be
	// launched. A claim is in one of them at most.
	Stalls   map[types.UID]*Stall
	Failures map[types.UID]*failure.Failure
	// Plan lists the writes that are due, and the reasons of those that are put off.
	Plan planner.Plan

	// open has the claim of each Machine whose link is being written.
	open map[string]types.UID
	// indexes are built when they are first used.
	indexes *indexes
	// hash of the resource; empty if it has none.
	hash string
	// exceeding has the claims that exceed a limit and have no Machine. They get none.
	exceeding sets.Set[types.UID]
	// failed has the Machines that have failed for good.
	failed map[string]*failure.Failure
	// unregistered has the Machines without a link whose Node has joined and was not registered.
	// They can still serve any claim.
	unregistered map[string]bool
	// instanceGone has the Machines whose instance no longer exists or, if they are leaving, is
	// being deleted.
	instanceGone map[string]bool
	// machineStalls has the Machines on which nothing acts.
	machineStalls map[string]*Stall
	// endingMachines has the Machines that are deleted with their MachineSet or MachineDeployment. Nothing
	// replaces them.
	endingMachines map[string]bool
	// stall is why no Machines are created for the resource; nil if they are created.
	stall *Stall

	// The rest depends on the kind of the resource: how replicas become Machines, what prevents
	// that, why no claim can be served, and when time alone changes something.
	scaling planner.Scaling
	// MachineSets are those of the resource, if several have Machines.
	MachineSets    []clusterv1.MachineSet
	scalingProblem string
	unusable       string
	due            []time.Time

	timings operator.Timings
}

// times returns the timings of the operator.
func (s *Snapshot) times() operator.Timings {
	return cmp.Or(s.timings, operator.ProductionTimings())
}

// Known is what a process knows and its caches may lack. The zero value is nothing.
type Known struct {
	// Machines returns the Machines of a resource, each in the latest known version, given those of the cache.
	Machines func(ctx context.Context, resource string, cached []clusterv1.Machine) ([]clusterv1.Machine, error)
	// Open has the Machine of each claim whose link is being written, by their UIDs. It must have been determined
	// before Load is called: what was written to others is in the caches, or Machines returns it.
	Open map[types.UID]types.UID
}

// Load reads a scalable resource from the caches and computes its plan. It returns nil if nothing
// may be done: the Cluster or the resource is paused, the Cluster does not exist, or this operator
// neither generated nor adopted the resource, whichever claim names it.
func Load(ctx context.Context, clusters *operator.Clusters, catalog *catalog.Catalog, name string, now time.Time, known Known) (*Snapshot, error) {
	management := clusters.Management.GetClient()
	cluster := &clusterv1.Cluster{}
	if err := management.Get(ctx, clusters.Cluster, cluster); err != nil {
		return nil, client.IgnoreNotFound(fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err))
	}
	if lo.FromPtr(cluster.Spec.Paused) {
		return nil, nil
	}
	snap := &Snapshot{Name: name, Now: now, timings: clusters.Timings, ClusterDeleting: !cluster.DeletionTimestamp.IsZero(), UpSince: now.Add(-clusters.Up())}
	resource, err := scalable.Get(ctx, clusters, name)
	if err != nil {
		return nil, err
	}
	if resource != nil {
		if _, generated := resource.GetLabels()[v1alpha1.TemplateLabel]; !generated {
			return nil, nil
		}
		if resource.Paused() && (!snap.ClusterDeleting || annotations.HasPaused(resource)) {
			return nil, nil
		}
		if snap.Suspended, err = resource.Suspended(ctx, clusters); err != nil {
			return nil, err
		}
		snap.Resource = resource
	}
	if err := snap.read(ctx, clusters, known); err != nil {
		return nil, err
	}
	if err := snap.readLimits(ctx, clusters, catalog); err != nil {
		return nil, err
	}
	snap.plan()
	snap.setSettled()
	snap.Stalls, snap.Failures = map[types.UID]*Stall{}, map[types.UID]*failure.Failure{}
	for _, claim := range snap.Settled {
		switch stall, failed := snap.why(claim); {
		case stall != nil:
			snap.Stalls[claim.UID] = stall
		case failed != nil:
			snap.Failures[claim.UID] = failed
		}
	}
	return snap, nil
}

// read reads what belongs to the resource.
func (s *Snapshot) read(ctx context.Context, clusters *operator.Clusters, known Known) error {
	claims := &karpv1.NodeClaimList{}
	if err := clusters.Workload.GetClient().List(ctx, claims, client.MatchingFields{operator.NodeClaimResourceField: s.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the NodeClaims of scalable resource %s: %w", s.Name, err)
	}
	s.Claims = claims.Items
	s.setHash()
	// After the claims, so that a claim never has the provider ID of a Machine that seems to have none.
	if err := s.readMachines(ctx, clusters, known); err != nil {
		return err
	}
	s.setOpen(known.Open)
	var err error
	if s.Template, err = clusters.Template(ctx, s.templateName()); err != nil {
		return err
	}
	s.Settings = settings.Of(s.Template)
	for name, machine := range s.Machines {
		if !s.Now.Before(s.startedAt(machine).Add(s.progressTimeout())) {
			if stall := MachineStall(ctx, clusters, machine); stall != nil {
				s.machineStalls[name] = stall
			}
		}
	}
	if s.Resource == nil {
		s.stall = noProgress("no %s %s exists yet: see the events of the NodeClaim", s.kind().Name(), s.Name)
	} else if s.unusable, err = scalable.Unusable(ctx, clusters, s.Resource); err != nil {
		return err
	}
	if s.kind().Name() == v1alpha1.ScalableResourceKindMachinePool {
		return s.loadPool(ctx, clusters)
	}
	return s.loadMachineSets(ctx, clusters)
}

// readMachines reads the Machines of the resource, and what each of them shows.
func (s *Snapshot) readMachines(ctx context.Context, clusters *operator.Clusters, known Known) error {
	machines, err := s.listMachines(ctx, clusters, known)
	if err != nil {
		return err
	}
	// A user can give the labels of the resource to a Machine of another owner.
	if machines, err = scalable.OwnMachines(ctx, clusters, machines); err != nil {
		return err
	}
	s.Machines, s.failed = make(map[string]*clusterv1.Machine, len(machines)), map[string]*failure.Failure{}
	s.unregistered, s.instanceGone, s.machineStalls = map[string]bool{}, map[string]bool{}, map[string]*Stall{}
	for i := range machines {
		machine := &machines[i]
		if s.Resource != nil && scalable.KindOfMachine(machine) != s.Resource.Kind() {
			continue // it belongs to another resource of that name
		}
		s.Machines[machine.Name] = machine
		if failed := FailureOf(ctx, clusters, machine); failed != nil {
			s.failed[machine.Name] = failed
		}
		unregistered, err := isUnregistered(ctx, clusters.Workload.GetClient(), machine, s.Resource)
		if err != nil {
			return err
		}
		if unregistered {
			s.unregistered[machine.Name] = true
		}
	}
	return nil
}

// listMachines returns the Machines of the resource, each in the latest known version.
func (s *Snapshot) listMachines(ctx context.Context, clusters *operator.Clusters, known Known) ([]clusterv1.Machine, error) {
	machines := &clusterv1.MachineList{}
	// The cache has one namespace, and copies all items if a list does not name it.
	options := []client.ListOption{
		client.InNamespace(clusters.Cluster.Namespace), client.MatchingFields{operator.ResourceField: s.Name}, client.UnsafeDisableDeepCopy,
	}
	if s.Resource == nil {
		// Machines keep this label while they are being deleted after their resource.
		options = append(options, client.HasLabels{v1alpha1.TemplateLabel})
	}
	if err := clusters.Management.GetClient().List(ctx, machines, options...); err != nil {
		return nil, fmt.Errorf("listing the Machines of scalable resource %s: %w", s.Name, err)
	}
	if known.Machines == nil {
		return machines.Items, nil
	}
	return known.Machines(ctx, s.Name, machines.Items)
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
