// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/link"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// Observed is one scalable resource with its claims and Machines, as the caches
// have them.
type Observed struct {
	// Name of the resource.
	Name string
	// Now is the time of the decision.
	Now time.Time
	// Ending reports whether the Cluster is being deleted: then no Machines are asked for.
	Ending bool
	// LeftAlone reports whether the operator decides nothing about the resource, because Cluster
	// API rolls it out or another controller sets its replicas. Machines are deleted without the
	// operator then: their claims end, and its hooks must not hold them.
	LeftAlone bool
	// Resource is nil if there is none of that name.
	Resource *Resource
	// Template that the resource is generated from; nil if it is gone.
	Template *v1alpha1.KarpenterMachineTemplate
	// Settings of the template.
	Settings Settings
	// Claims that name the resource.
	Claims []karpv1.NodeClaim
	// Machines of the resource by name.
	Machines map[string]*clusterv1.Machine
	// Plan is what is to be done.
	Plan link.Plan

	// exceeding has the claims that are over a limit and have no Machine: they get none.
	exceeding sets.Set[types.UID]
	// failed has the Machines that have failed for good.
	failed map[string]*failure.Failure
	// fresh has the Machines whose Node has joined and waits for Karpenter, before
	// they were linked: they can still serve any claim.
	fresh map[string]bool
	// gone has the Machines whose instance is gone or, if they are leaving, going.
	gone map[string]bool
	// halts has the Machines that nothing works on.
	halts map[string]*Halt
	// halt is why no Machines are created for the resource; nil if they are.
	halt *Halt

	// What the resource's kind has observed: how replicas become Machines, what keeps
	// them from that, why no claim can be served, and when time alone changes something.
	scaling        link.Scaling
	machineSets    []clusterv1.MachineSet // where there are several
	scalingProblem string
	unusable       string
	due            []time.Time

	timings operator.Timings
}

// times returns the timings of the operator.
func (o *Observed) times() operator.Timings {
	return cmp.Or(o.timings, operator.ProductionTimings())
}

// Newest returns the Machines of a scalable resource, each in the latest version that is
// known, given those of the cache.
type Newest func(ctx context.Context, resource string, cached []clusterv1.Machine) ([]clusterv1.Machine, error)

// Observe reads a scalable resource from the caches and decides what is to be
// done now. It returns nil if nothing may be: the Cluster or the resource is
// paused, the Cluster does not exist, or the resource was neither generated nor adopted
// by this operator, whatever claim names it.
//
// newest replaces Machines that the caller knows in a later version than the cache; nil
// if it knows none.
func Observe(ctx context.Context, clusters *operator.Clusters, catalog *catalog.Catalog, name string, now time.Time, newest Newest) (*Observed, error) {
	management := clusters.Management.GetClient()
	cluster := &clusterv1.Cluster{}
	if err := management.Get(ctx, clusters.Cluster, cluster); err != nil {
		return nil, client.IgnoreNotFound(fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err))
	}
	if lo.FromPtr(cluster.Spec.Paused) {
		return nil, nil
	}
	observed := &Observed{Name: name, Now: now, timings: clusters.Timings, Ending: !cluster.DeletionTimestamp.IsZero()}
	resource, err := Get(ctx, clusters, name)
	if err != nil {
		return nil, err
	}
	if resource != nil {
		if _, generated := resource.GetLabels()[v1alpha1.TemplateLabel]; !generated {
			return nil, nil
		}
		if resource.stopped() && (!observed.Ending || annotations.HasPaused(resource)) {
			return nil, nil
		}
		if observed.LeftAlone, err = resource.Paused(ctx, clusters); err != nil {
			return nil, err
		}
		observed.Resource = resource
	}
	if err := observed.read(ctx, clusters, newest); err != nil {
		return nil, err
	}
	if err := observed.readLimits(ctx, clusters, catalog); err != nil {
		return nil, err
	}
	observed.decide()
	return observed, nil
}

// read reads what belongs to the resource.
func (o *Observed) read(ctx context.Context, clusters *operator.Clusters, newest Newest) error {
	workload, management := clusters.Workload.GetClient(), clusters.Management.GetClient()
	claims := &karpv1.NodeClaimList{}
	if err := workload.List(ctx, claims, client.MatchingFields{operator.NodeClaimResourceField: o.Name}); err != nil {
		return fmt.Errorf("listing the NodeClaims of scalable resource %s: %w", o.Name, err)
	}
	o.Claims = claims.Items
	machines, err := o.listMachines(ctx, management, newest)
	if err != nil {
		return err
	}
	o.Machines, o.failed = map[string]*clusterv1.Machine{}, map[string]*failure.Failure{}
	o.fresh, o.gone, o.halts = map[string]bool{}, map[string]bool{}, map[string]*Halt{}
	for i := range machines {
		machine := &machines[i]
		if o.Resource != nil && kindOf(machine) != o.Resource.kind {
			continue // of another resource of that name
		}
		o.Machines[machine.Name] = machine
		if failed := FailureOf(ctx, clusters, machine); failed != nil {
			o.failed[machine.Name] = failed
		}
		fresh, err := isFresh(ctx, workload, machine, o.Resource)
		if err != nil {
			return err
		}
		o.fresh[machine.Name] = fresh
	}
	if o.Template, err = GetTemplate(ctx, workload, o.templateName()); err != nil {
		return err
	}
	o.Settings = SettingsOf(o.Template)
	for name, machine := range o.Machines {
		if !o.Now.Before(startedAt(machine).Add(o.patience())) {
			o.halts[name] = MachineHalt(ctx, clusters, machine)
		}
	}
	if o.Resource == nil {
		o.halt = noProgress("no %s %s exists yet: see the events of the NodeClaim", o.kind().Name(), o.Name)
	} else if o.unusable, err = o.Resource.kind.unusable(ctx, clusters, o.Resource); err != nil {
		return err
	}
	return o.kind().observe(ctx, clusters, o)
}

// listMachines returns the Machines of the resource, each in the latest version that is known.
func (o *Observed) listMachines(ctx context.Context, management client.Reader, newest Newest) ([]clusterv1.Machine, error) {
	machines := &clusterv1.MachineList{}
	options := []client.ListOption{client.MatchingFields{operator.ResourceField: o.Name}}
	if o.Resource == nil {
		// The label is there also if the resource is gone, and its Machines are still going.
		options = append(options, client.HasLabels{v1alpha1.TemplateLabel})
	}
	if err := management.List(ctx, machines, options...); err != nil {
		return nil, fmt.Errorf("listing the Machines of scalable resource %s: %w", o.Name, err)
	}
	if newest == nil {
		return machines.Items, nil
	}
	return newest(ctx, o.Name, machines.Items)
}

// kind returns the kind of the resource, also if there is none yet.
func (o *Observed) kind() Kind {
	switch {
	case o.Resource != nil:
		return o.Resource.kind
	case o.Template != nil:
		return KindOf(o.Template.Spec.ScalableResource)
	default:
		return kinds[0]
	}
}

// isFresh tells whether a Machine without a link has a Node that Karpenter has not
// registered yet, so that no Pod can be on it. Nodes of an adopted resource may join
// without Karpenter's taint: there it is enough that no claim ever had the Node.
func isFresh(ctx context.Context, workload client.Reader, machine *clusterv1.Machine, resource *Resource) (bool, error) {
	if !Used(machine) || ClaimUID(machine) != "" {
		return false, nil
	}
	node := &corev1.Node{}
	if err := workload.Get(ctx, types.NamespacedName{Name: machine.Status.NodeRef.Name}, node); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting Node %s: %w", machine.Status.NodeRef.Name, err))
	}
	if _, registered := node.Labels[karpv1.NodeRegisteredLabelKey]; !registered && resource != nil && Adopted(resource) {
		return true, nil
	}
	return lo.ContainsBy(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.MatchTaint(&karpv1.UnregisteredNoExecuteTaint) }), nil
}

// used tells whether a Machine has become a Node that Pods may be on.
func (o *Observed) used(machine *clusterv1.Machine) bool {
	return Used(machine) && !o.fresh[machine.Name]
}

// Lost tells whether a Machine has lost its instance, will never become a Node, and is
// as good as leaving.
func (o *Observed) Lost(machine *clusterv1.Machine) bool {
	return !Leaving(machine) && o.gone[machine.Name]
}

// templateName returns the name of the resource's template, also if there is only
// a claim yet, or only a Machine left.
func (o *Observed) templateName() string {
	if o.Resource != nil {
		return o.Resource.GetLabels()[v1alpha1.TemplateLabel]
	}
	if len(o.Claims) > 0 {
		return lo.FromPtr(o.Claims[0].Spec.NodeClassRef).Name
	}
	for _, machine := range o.Machines {
		if name := machine.Labels[v1alpha1.TemplateLabel]; name != "" {
			return name
		}
	}
	return ""
}

// state returns what the decision is made from.
func (o *Observed) state() link.State {
	state := link.State{Scaling: o.scaling}
	if o.Resource != nil {
		state.Replicas = o.Resource.Replicas()
		state.Adopted, state.Own = Adoption(o.Resource)
	}
	for i := range o.Claims {
		claim := &o.Claims[i]
		state.Claims = append(state.Claims, link.Claim{
			UID:          claim.UID,
			Name:         claim.Name,
			Created:      claim.CreationTimestamp.Time,
			ProviderID:   claim.Status.ProviderID,
			NeedsMachine: o.needsMachine(claim),
			Leaving:      !claim.DeletionTimestamp.IsZero(),
		})
	}
	for _, machine := range o.Machines {
		state.Machines = append(state.Machines, link.Machine{
			Name:       machine.Name,
			Created:    machine.CreationTimestamp.Time,
			Claim:      ClaimUID(machine),
			ProviderID: machine.Spec.ProviderID,
			Leaving:    Leaving(machine) || o.Lost(machine),
			Used:       o.used(machine),
			Unfit:      o.unfit(machine),
			Expired:    o.expired(machine),
			Released:   machine.Annotations[v1alpha1.SpareSinceAnnotation] != "",
			Chosen:     Chosen(machine),
			Held:       held(machine),
			Settled:    Chosen(machine) && !o.Now.Before(LeavingSince(machine, o.Now).Add(o.times().Settle)),
			Gone:       o.gone[machine.Name],
		})
	}
	return state
}

// expired tells whether a Machine without a link has been kept for long enough. One
// that has a Node, of whatever claim, is marked first, so that nothing is concluded
// from its age.
func (o *Observed) expired(machine *clusterv1.Machine) bool {
	if o.used(machine) && machine.Annotations[v1alpha1.SpareSinceAnnotation] == "" {
		return false
	}
	return !o.Now.Before(spareSince(machine).Add(o.Settings.SpareTTL))
}

// Waits tells whether a claim is to get a Machine and has none.
func (o *Observed) Waits(claim *karpv1.NodeClaim) bool {
	return o.needsMachine(claim) && o.Plan.Served[claim.UID] == ""
}

// DueIn returns after what time the passing of time alone changes what is to be
// done: a Machine or a claim has waited too long, or a spare Machine has been kept
// long enough. It is zero if nothing will.
func (o *Observed) DueIn() time.Duration {
	due := slices.Clone(o.due)
	for _, machine := range o.Machines {
		if Leaving(machine) || o.used(machine) && ClaimUID(machine) != "" {
			continue
		}
		if !o.used(machine) {
			due = append(due, startedAt(machine).Add(o.patience()), startedAt(machine).Add(o.Settings.LaunchTimeout))
		}
		if ClaimUID(machine) == "" {
			due = append(due, spareSince(machine).Add(o.Settings.SpareTTL))
		}
	}
	if len(o.exceeding) > 0 {
		// No event tells when another claim leaves room within the limit.
		due = append(due, o.Now.Add(limitPoll))
	}
	for i := range o.Claims {
		due = append(due, o.claimDue(&o.Claims[i])...)
	}
	return requeue.Soonest(lo.Map(due, func(at time.Time, _ int) time.Duration { return at.Sub(o.Now) })...)
}
