// SPDX-License-Identifier: Apache-2.0

// Package machinetemplate reports in the status of a KarpenterMachineTemplate whether it can
// be used, what it offers, and what was generated from it. Each file has the conditions of one subject. It also
// adds the finalizer that package generatedcopy removes.
package machinetemplate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

const (
	// concurrency is the number of templates that are reconciled at once.
	concurrency = 10

	// setTimeout limits the wait for the objects of a kind. The cache never has them while
	// the operator lacks the right to read them. The rest of timeout is for writing the
	// status.
	setTimeout = time.Minute
	timeout    = setTimeout + 30*time.Second

	// outagePoll is the interval at which a template is reconciled during an interruption, which no event
	// turns into an outage. It writes nothing that has not changed.
	outagePoll = 15 * time.Second
)

// Reconciler keeps the status of the templates.
type Reconciler struct {
	clusters *clients.Clusters
	catalog  *catalog.Catalog
	recorder events.Recorder
	clock    clock.PassiveClock
	// templates maps objects to templates, and kinds has the watches of those that templates refer to.
	templates *enqueue.Templates
	kinds     *enqueue.Kinds
	// spacing keeps the reconciles of a template with many claims apart.
	spacing  *enqueue.Spacing
	examiner *generate.Examiner
	// dra reports whether Karpenter plans Nodes for ResourceClaims, so that the devices of Nodes are of interest.
	dra bool
	// written has the time of the last write of the status of each template, by name.
	written sync.Map
	// permitted has the kinds of remediation requests to which the operator has all rights.
	permitted sync.Map
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *clients.Clusters, catalog *catalog.Catalog, recorder events.Recorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{clusters: clusters, catalog: catalog, recorder: recorder, clock: clock, templates: enqueue.NewTemplates(clusters), spacing: enqueue.NewSpacing(clock), examiner: generate.NewExaminer(clusters, catalog, clock)}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(ctx context.Context, mgr manager.Manager) error {
	management := r.clusters.Management.GetCache()
	b := ctrl.NewControllerManagedBy(mgr).Named("capi.machinetemplate").For(&v1alpha1.KarpenterMachineTemplate{})
	for _, kind := range scalable.Kinds() {
		b = b.WatchesRawSource(source.Kind(management, scalable.NewObject(kind), r.spacing.Later(r.templates.OfResource)))
	}
	// Which MachineSets have Machines decides whether a MachineDeployment is suspended.
	b = b.WatchesRawSource(source.Kind[client.Object](management, &clusterv1.MachineSet{}, r.spacing.Later(r.templates.OfGenerated), enqueue.MachinesMoved()))
	// What the Cluster's own MachineDeployments and MachinePools refer to decides which Secrets and base
	// templates all templates may refer to, see package tenancy.
	for _, kind := range scalable.Kinds() {
		b = b.WatchesRawSource(source.Kind(management, scalable.NewObject(kind), r.spacing.Later(r.templates.All), enqueue.OwnReferencesChanged(r.clusters.Cluster)))
	}
	for _, connection := range r.connections() {
		b = b.WatchesRawSource(connection)
	}
	if counts := r.catalog.Inventories(); counts != nil {
		ofCounts := func(context.Context, client.Object) []string { return counts.Templates() }
		b = b.WatchesRawSource(source.Channel(counts.Changed(), r.spacing.Later(ofCounts)))
	}
	if r.dra = !options.FromContext(ctx).IgnoreDRARequests; r.dra {
		// A DRA driver can start long after its Node is ready.
		b = b.WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &resourcev1.ResourceSlice{}, r.spacing.Later(r.templates.OfSlice), enqueue.DevicesChanged()))
	}
	c, err := b.
		WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &karpv1.NodeClaim{}, r.spacing.Later(r.templates.OfClaim))).
		WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &karpv1.NodePool{}, r.spacing.Later(r.templates.OfPool), predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &karpv1.NodeClaim{}, r.spacing.Later(r.templates.SharingLimits), enqueue.LimitsChanged())).
		// A CSI driver can start long after its Node is ready.
		WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &storagev1.CSINode{}, r.spacing.Later(r.templates.OfNode), enqueue.VolumeLimitsChanged())).
		// A rollout depends on whether Nodes are ready.
		WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &corev1.Node{}, r.spacing.Later(r.templates.OfNode), enqueue.NodeReadyChanged())).
		WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &v1alpha1.InstanceTypeCatalog{}, enqueue.Now(r.templates.OfCatalog), predicate.GenerationChangedPredicate{})).
		// The window gives the cache time to have the templates that a changed MachineDeployment names.
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.MachineDeployment{}, r.spacing.Later(r.templates.OfPattern), pattern.Changed())).
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.Cluster{}, enqueue.Now(r.templates.All), enqueue.ClusterChanged())).
		WatchesRawSource(source.Kind[client.Object](management, reference.CRD(), enqueue.Now(r.templates.All), reference.ContractChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, ReconciliationTimeout: timeout}).
		Build(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of KarpenterMachineTemplates: %w", err)
	}
	r.kinds = enqueue.NewKinds(c, management)
	return nil
}

// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates,verbs=list;watch;patch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates/status,verbs=patch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=instancetypecatalogs,verbs=list;watch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=clusters;machinedeployments;machinepools;machinesets,verbs=get;list;watch
// +kubebuilder:rbac:roleName=management-role,groups=infrastructure.cluster.x-k8s.io;bootstrap.cluster.x-k8s.io,resources=*,verbs=get;list;watch;create
// +kubebuilder:rbac:roleName=management-role,groups=controlplane.cluster.x-k8s.io,resources=*,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodepools,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:roleName=management-cluster-role,groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Reconcile reconciles one template.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	r.spacing.Begin(request.Name)
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := r.clusters.Workload.GetClient().Get(ctx, request.NamespacedName, template); err != nil {
		if apierrors.IsNotFound(err) {
			r.catalog.Forget(request.Name)
			r.examiner.Forget(request.Name)
			r.written.Delete(request.Name)
			metrics.Forget(request.Name)
			r.spacing.SetSize(request.Name, 0)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("getting KarpenterMachineTemplate %s: %w", request.Name, err)
	}
	interrupted := r.clusters.Guard(ctx) != nil
	if err := r.ensureFinalizer(ctx, template); err != nil {
		return requeue.AfterConflict(reconcile.Result{}, err)
	}
	stored := template.DeepCopy()
	examineAgain, setErr := r.setStatus(ctx, template)
	r.spacing.SetSize(template.Name, int(template.Status.NodeClaims))
	stored.Spec = template.Spec // setStatus resolves it
	writeAgain, patchErr := r.patchStatus(ctx, template, stored)
	if err := errors.Join(setErr, patchErr); err != nil {
		return requeue.AfterConflict(reconcile.Result{}, err)
	}
	if interrupted {
		examineAgain = requeue.Soonest(examineAgain, outagePoll)
	}
	return reconcile.Result{RequeueAfter: requeue.Soonest(examineAgain, writeAgain, catalog.ChangesIn(template.Status.UnavailableOfferings, r.clock.Now()))}, nil
}

// setStatus sets the parts of the status. A part that fails stays as it is stored, with the
// generation for which it was set, so that the template does not become Ready in a
// generation that was not fully examined. It returns the time until the next examination.
func (r *Reconciler) setStatus(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (time.Duration, error) {
	if unreachable, err := r.setUnreachable(ctx, template); unreachable {
		return 0, err // Reconcile polls
	}
	ctx, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	var examineAgain time.Duration
	var errs []error
	before, examined := template.Status.From, true
	if err := r.setFromReady(ctx, template); err != nil {
		return 0, err // the rest depends on it
	}
	for _, set := range []func(context.Context, *v1alpha1.KarpenterMachineTemplate) error{
		r.setDeletable,
		r.setClusterReady,
		r.setInfrastructureReady,
		r.setBootstrapReady,
		r.setVersionReady,
		func(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (err error) {
			if examineAgain, err = r.setInstanceTypesReady(ctx, template); err != nil {
				examined, template.Status.From = false, nil // what is taken takes effect when it is examined
			}
			return err
		},
		r.setOfferingsAvailable,
		r.setScalableResources,
		r.setLimits,
		func(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
			again, err := r.setMachinesProgressing(ctx, template)
			examineAgain = requeue.Soonest(examineAgain, again)
			return err
		},
		func(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
			again, err := r.setNodesCurrent(ctx, template)
			examineAgain = requeue.Soonest(examineAgain, again)
			return err
		},
		r.setCapacityAccurate,
		r.setNodesTainted,
		r.setRemediationReady,
		r.setOfferingsValid,
		r.setReady, // after all conditions, because each one that changes overwrites the message of Ready
		r.setAvailable,
	} {
		errs = append(errs, set(ctx, template))
	}
	if !examined {
		template.Status.From = before
	}
	if template.StatusConditions().Get(v1alpha1.ConditionMachinesProgressing).IsUnknown() || waitsForRights(template) {
		examineAgain = requeue.Soonest(examineAgain, readAgain)
	}
	// Messages contain texts of other controllers and users, of any length.
	for i := range template.Status.Conditions {
		condition := &template.Status.Conditions[i]
		condition.Message = budget.Text(condition.Message, budget.Message)
	}
	return examineAgain, errors.Join(errs...)
}

// patchStatus writes the status if it differs from the stored one. If only counts do, it can return after what time
// they are to be written instead.
func (r *Reconciler) patchStatus(ctx context.Context, template, stored *v1alpha1.KarpenterMachineTemplate) (time.Duration, error) {
	if equality.Semantic.DeepEqual(stored.Status, template.Status) {
		return 0, nil
	}
	if left := r.untilCounts(template.Name); left > 0 && onlyCounts(&stored.Status, &template.Status) {
		return left, nil
	}
	if err := precondition.WriteStatus(ctx, r.clusters.Workload.GetClient(), stored, template, "patching the status of"); err != nil {
		if !requeue.IsChanged(err) {
			r.recorder.Publish(statusNotWritten(template, err))
		}
		return 0, err
	}
	r.written.Store(template.Name, r.clock.Now())
	return 0, nil
}

// setReady copies the reasons and messages of False conditions to Ready, which users read
// first and which Karpenter repeats on NodePools and NodeClaims. operatorpkg itself only names
// the conditions.
func (r *Reconciler) setReady(_ context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions := template.StatusConditions()
	var reason string
	var messages []string
	dependents := []string{
		v1alpha1.ConditionClusterReady, v1alpha1.ConditionFromReady, v1alpha1.ConditionInfrastructureReady,
		v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady,
	}
	if !template.DeletionTimestamp.IsZero() {
		dependents = append([]string{v1alpha1.ConditionDeletable}, dependents...)
	}
	for _, dependent := range dependents {
		// A condition of an earlier generation could not be set now.
		if condition := conditions.Get(dependent); condition.IsFalse() && condition.ObservedGeneration == template.Generation {
			reason = lo.CoalesceOrEmpty(reason, condition.Reason)
			messages = append(messages, condition.Message)
		}
	}
	if len(messages) > 0 {
		conditions.SetFalse(status.ConditionReady, reason, strings.Join(messages, "; "))
	}
	return nil
}

// statusNotWritten returns the event for a template whose status is out of date.
func statusNotWritten(template *v1alpha1.KarpenterMachineTemplate, err error) events.Event {
	return events.Event{
		InvolvedObject: template,
		Type:           corev1.EventTypeWarning,
		Reason:         "StatusNotWritten",
		Message:        fmt.Sprintf("The status is out of date because it cannot be written. If the template is too large, split it into several templates: %s", err),
		DedupeValues:   []string{string(template.UID)},
	}
}

// waitsForClaims returns the event for a template whose deletion waits for NodeClaims. It is repeated
// at most every 10 minutes.
func waitsForClaims(template *v1alpha1.KarpenterMachineTemplate, message string) events.Event {
	return events.Event{
		InvolvedObject: template,
		Type:           corev1.EventTypeNormal,
		Reason:         "WaitingOnNodeClaimTermination",
		Message:        message,
		DedupeValues:   []string{string(template.UID)},
		DedupeTimeout:  10 * time.Minute,
	}
}
