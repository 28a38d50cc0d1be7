// SPDX-License-Identifier: Apache-2.0

// Package cloudprovider is Karpenter's CloudProvider for Cluster API. Create chooses
// an offering and writes nothing: Karpenter core persists what it returns on the
// NodeClaim, and the reconcilers of internal/controller act on that. A crash before
// core has persisted the decision has no effect. Two methods write. Delete unlinks the
// Machine of the claim or marks it for deletion, and marks the offering of a claim whose
// Node has not joined. Reboot creates the remediation request of a Machine (package
// remediation).
package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/patrickmn/go-cache"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/drift"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

var _ cloudprovider.CloudProvider = (*CloudProvider)(nil)

// rememberedFor is how long CloudProvider remembers a claim that ends, from the last call of Delete
// that has found its Machine. Core calls Delete every 5 seconds.
const rememberedFor = 10 * time.Minute

// decidedFor is how long Create remembers a decision. Core stores it within a few seconds, or calls Create again.
const decidedFor = time.Minute

// Every Node of Cluster API starts with a taint that Cluster API removes when it
// knows the Machine of the Node. Karpenter must not require that Pods tolerate it.
func init() {
	scheduling.KnownEphemeralTaints = append(scheduling.KnownEphemeralTaints, clusterv1.NodeUninitializedTaint)
}

// CloudProvider implements Karpenter's interface CloudProvider.
type CloudProvider struct {
	clusters *clients.Clusters
	catalog  *catalog.Catalog
	clock    clock.PassiveClock
	recorder events.Recorder
	overlays *nodeoverlay.InstanceTypeStore
	drifts   *drift.Cache

	// ending has, by UID, the provider IDs of the registered claims that end and whose Machine the cache
	// has had. Core calls Delete for the Node and for the claim, so an entry must last until both
	// have ended.
	ending *cache.Cache
	// deciding is held while Create decides. decided has, by UID, the claims that it decided about and whose launch the cache
	// may not have yet, if the template takes from an inventory or has spec.spread.
	deciding sync.Mutex
	decided  *cache.Cache
	// marked has the UIDs of the claims whose Machine this process has marked for deletion.
	marked *cache.Cache
}

// New returns the CloudProvider for the served Cluster.
func New(clusters *clients.Clusters, catalog *catalog.Catalog, clock clock.PassiveClock) *CloudProvider {
	return &CloudProvider{clusters: clusters, catalog: catalog, clock: clock, recorder: noEvents{}, drifts: drift.NewCache(clusters, catalog, clock), ending: cache.New(rememberedFor, rememberedFor), decided: cache.New(decidedFor, decidedFor), marked: cache.New(rememberedFor, rememberedFor)}
}

// WithRecorder makes Delete and Reboot publish events.
func (c *CloudProvider) WithRecorder(recorder events.Recorder) *CloudProvider {
	c.recorder = recorder
	return c
}

// WithOverlays makes Create use the prices and capacities of NodeOverlays, like core's
// scheduler while its feature gate NodeOverlay is on.
func (c *CloudProvider) WithOverlays(overlays *nodeoverlay.InstanceTypeStore) *CloudProvider {
	c.overlays = overlays
	return c
}

// Create chooses the offering with which a claim is launched. It reads only from
// caches and writes nothing. The claim that it returns has the labels, capacity and
// allocatable of its future Node, the name of its scalable resource, and a
// provisional provider ID.
//
// It returns InsufficientCapacityError if nothing fits, and NodeClassNotReadyError if
// the template does not exist or is not Ready.
//
// While a cluster cannot be reached, it returns a CreateError, with which core only waits.
func (c *CloudProvider) Create(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	if err := c.clusters.Guard(ctx); err != nil {
		return nil, cloudprovider.NewCreateError(err, v1alpha1.ReasonClusterUnreachable, connection.Message(err))
	}
	template, err := c.template(ctx, claim.Spec.NodeClassRef)
	if err != nil {
		return nil, err
	}
	conditions := template.StatusConditions()
	switch ready, reached := conditions.Get(status.ConditionReady), conditions.Get(v1alpha1.ConditionClusterReady); {
	case reached.IsFalse() && reached.Reason == v1alpha1.ReasonClusterUnreachable:
		// Both clusters answer again, and the status is from before that. Core deletes the claim if the template is not ready.
		return nil, cloudprovider.NewCreateError(fmt.Errorf("KarpenterMachineTemplate %s is not reconciled yet since %s", template.Name, reached.Message),
			v1alpha1.ReasonClusterUnreachable, reached.Message)
	case ready.IsFalse():
		return nil, cloudprovider.NewNodeClassNotReadyError(fmt.Errorf("KarpenterMachineTemplate %s is not ready: %s", template.Name, ready.Message))
	case ready.IsUnknown() || ready.ObservedGeneration != template.Generation || !c.catalog.Examined(template):
		// The offerings of this generation are not examined yet.
		return nil, cloudprovider.NewCreateError(fmt.Errorf("KarpenterMachineTemplate %s is not reconciled yet", template.Name),
			v1alpha1.ReasonNodeClassReadinessUnknown, fmt.Sprintf("KarpenterMachineTemplate %s is not reconciled yet", template.Name))
	}
	instanceTypes, err := c.instanceTypes(ctx, template, claim)
	if err != nil {
		return nil, err
	}
	decision, err := c.decide(ctx, template, claim, instanceTypes)
	if err != nil {
		return nil, err
	}
	launch, err := generate.LaunchOf(ctx, c.clusters, c.catalog, template, decision.key())
	if err != nil {
		c.decided.Delete(string(claim.UID))
	}
	if catalog.IsNotOffered(err) {
		return nil, cloudprovider.NewInsufficientCapacityError(err)
	}
	if err != nil {
		return nil, cloudprovider.NewCreateError(err, v1alpha1.ReasonTemplateUnusable, err.Error())
	}
	created := decision.nodeClaim(claim)
	created.Annotations = launch.Annotate(created.Annotations)
	return created, nil
}

// instanceTypes returns the instance types for a claim as core's scheduler has them:
// with the NodeOverlays of the claim's NodePool.
func (c *CloudProvider) instanceTypes(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) ([]*cloudprovider.InstanceType, error) {
	instanceTypes, err := c.catalog.InstanceTypesFor(ctx, template, catalog.DemandOfClaim(claim), c.clock.Now())
	pool := claim.Labels[karpv1.NodePoolLabelKey]
	if err != nil || c.overlays == nil || pool == "" {
		return instanceTypes, err
	}
	instanceTypes, err = c.overlays.ApplyAll(pool, instanceTypes)
	if err != nil {
		return nil, fmt.Errorf("applying the NodeOverlays of NodePool %s: %w", pool, err)
	}
	return instanceTypes, nil
}

// Get returns the claim with a provider ID, which is that of a Machine or of a claim. A Machine
// whose instance no longer exists counts as not found: core then does not drain its Node. Instead of
// NodeClaimNotFoundError it returns another error while the Cluster is paused or moved.
func (c *CloudProvider) Get(ctx context.Context, providerID string) (*karpv1.NodeClaim, error) {
	if providerID == "" {
		return nil, cloudprovider.NewNodeClaimNotFoundError(errors.New("no provider ID given"))
	}
	if err := c.clusters.Guard(ctx); err != nil {
		return nil, err
	}
	machines, err := c.machinesWith(ctx, providerID)
	if err != nil {
		return nil, err
	}
	var exist []clusterv1.Machine
	for i := range machines {
		gone, _, err := snapshot.InstanceGone(ctx, c.clusters, &machines[i], c.clock.Now())
		if err != nil {
			return nil, err
		}
		if gone == "" {
			exist = append(exist, machines[i])
		}
	}
	if len(exist) > 0 {
		// A claim can have two Machines. One that is leaving counts only if there is no other.
		stays, found := lo.Find(exist, func(machine clusterv1.Machine) bool { return !lifecycle.IsLeaving(&machine) })
		return fromMachine(lo.Ternary(found, &stays, &exist[0])), nil
	}
	if _, provisional := planner.ParseProvisionalID(providerID); provisional {
		// The claim has no Machine yet, so the claim itself has all that is known.
		claims := &karpv1.NodeClaimList{}
		if err := c.clusters.Workload.GetClient().List(ctx, claims, client.MatchingFields{clients.NodeClaimProviderIDField: providerID}); err != nil {
			return nil, fmt.Errorf("listing NodeClaims with provider ID %s: %w", providerID, err)
		}
		if len(claims.Items) > 0 && claims.Items[0].DeletionTimestamp.IsZero() {
			return &claims.Items[0], nil
		}
	}
	if len(machines) == 0 {
		if err := c.checkAbsence(ctx); err != nil {
			return nil, err
		}
	}
	return nil, cloudprovider.NewNodeClaimNotFoundError(fmt.Errorf("no Machine has provider ID %s", providerID))
}

// List returns a claim for each Machine that serves one. It returns an error while the Cluster is paused
// or moved, because Karpenter core deletes claims that List does not return. It checks that after it
// has listed the Machines, so that they were complete. A claim has the ID with which core knows it.
func (c *CloudProvider) List(ctx context.Context) ([]*karpv1.NodeClaim, error) {
	if err := c.clusters.Guard(ctx); err != nil {
		return nil, err
	}
	machines, err := c.machines(ctx, c.clusters.Management.GetClient(), lifecycle.LinkedToAny())
	if err != nil {
		return nil, err
	}
	if err := c.checkAbsence(ctx); err != nil {
		return nil, err
	}
	claims := &karpv1.NodeClaimList{}
	if err := c.clusters.Workload.GetClient().List(ctx, claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	byUID := lo.KeyBy(lo.ToSlicePtr(claims.Items), func(claim *karpv1.NodeClaim) types.UID { return claim.UID })
	return lo.Map(machines, func(_ clusterv1.Machine, i int) *karpv1.NodeClaim {
		served := fromMachine(&machines[i])
		if claim := byUID[served.UID]; claim != nil && hasKeptID(claim, &machines[i]) {
			served.Status.ProviderID = claim.Status.ProviderID
		}
		return served
	}), nil
}

// GetInstanceTypes returns the instance types of the NodePool's template. Offerings whose Nodes join with
// taints that the NodePool does not have are not available to it. The values
// are shared: core does not modify them, and no caller may.
func (c *CloudProvider) GetInstanceTypes(ctx context.Context, nodePool *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	template, err := c.template(ctx, nodePool.Spec.Template.Spec.NodeClassRef)
	if err != nil {
		return nil, err
	}
	return c.catalog.InstanceTypesFor(ctx, template, catalog.DemandOf(nodePool), c.clock.Now())
}

// IsDrifted returns why a claim is not what its template generates now (see package drift); empty if
// it is, if that cannot be decided now, or if the rollout of the template does not replace the claim now (see
// package rollout).
func (c *CloudProvider) IsDrifted(ctx context.Context, claim *karpv1.NodeClaim) (cloudprovider.DriftReason, error) {
	if err := c.clusters.Guard(ctx); err != nil {
		return "", err
	}
	template, err := c.template(ctx, claim.Spec.NodeClassRef)
	if cloudprovider.IsNodeClassNotReadyError(err) {
		return "", nil // the template does not exist
	}
	if err != nil {
		return "", err
	}
	answers, decided, err := c.drifts.Of(ctx, template)
	if err != nil || !decided {
		return "", err
	}
	reason, err := answers.Reason(ctx, claim)
	if err != nil || reason == "" {
		return "", err
	}
	if may, err := answers.MayReplace(ctx, claim); err != nil || !may {
		return "", err
	}
	return reason, nil
}

// Name returns the name of this provider in logs and metrics.
func (c *CloudProvider) Name() string {
	return "cluster-api"
}

// GetSupportedNodeClasses returns the only kind of NodeClass.
func (c *CloudProvider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.KarpenterMachineTemplate{}}
}

// template returns the template that a NodeClass reference names. It is shared and must not be modified.
func (c *CloudProvider) template(ctx context.Context, ref *karpv1.NodeClassReference) (*v1alpha1.KarpenterMachineTemplate, error) {
	if !clients.IsTemplate(ref) {
		return nil, cloudprovider.NewNodeClassNotReadyError(fmt.Errorf("nodeClassRef must name a %s of group %s, found %+v", v1alpha1.Kind, v1alpha1.Group, ref))
	}
	template, err := c.clusters.SharedTemplate(ctx, ref.Name)
	if err == nil && template == nil {
		return nil, cloudprovider.NewNodeClassNotReadyError(fmt.Errorf("KarpenterMachineTemplate %s does not exist", ref.Name))
	}
	return template, err
}

func (c *CloudProvider) machines(ctx context.Context, reader client.Reader, opts ...client.ListOption) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := reader.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	return list.Items, nil
}
