// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"
	"maps"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// A reconcile of a template takes about 25 microseconds for each of its claims. With 5,000 claims, reconciles begin 5 s apart. They
// also count the claims that maxMachines and reservations limit, so that with longer gaps Karpenter would plan too many.
const (
	gapPerClaim    = time.Millisecond
	maxTemplateGap = 5 * time.Second
)

var (
	// ofTemplateChange collects changes of NodeClaims and of generated objects, which are frequent
	// during a scale-out, into one reconcile of their template.
	ofTemplateChange = urgency{window: time.Second, gapPerObject: gapPerClaim, maxGap: maxTemplateGap}
	// ofTemplateStatus does the same for changes of nothing but their status, which are the most frequent.
	ofTemplateStatus = urgency{window: 3 * time.Second, gapPerObject: gapPerClaim, maxGap: maxTemplateGap}
)

// Templates maps objects of both clusters to the names of KarpenterMachineTemplates.
type Templates struct {
	clusters *clients.Clusters
}

// NewTemplates returns the mapping for the served Cluster.
func NewTemplates(clusters *clients.Clusters) *Templates { return &Templates{clusters: clusters} }

// All returns all templates. There are few of them.
func (t *Templates) All(ctx context.Context, _ client.Object) []string {
	return t.names(ctx, func(*v1alpha1.KarpenterMachineTemplate) bool { return true })
}

// names returns the names of those templates.
func (t *Templates) names(ctx context.Context, which func(*v1alpha1.KarpenterMachineTemplate) bool) []string {
	templates := &v1alpha1.KarpenterMachineTemplateList{}
	if err := t.clusters.Workload.GetClient().List(ctx, templates, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing KarpenterMachineTemplates")
		return nil
	}
	return lo.FilterMap(templates.Items, func(template v1alpha1.KarpenterMachineTemplate, i int) (string, bool) {
		return template.Name, which(&templates.Items[i])
	})
}

// OfGenerated returns the template that an object was generated for. It returns none if the
// object was not generated, or belongs to another Cluster.
func (t *Templates) OfGenerated(_ context.Context, object client.Object) []string {
	return lo.Compact([]string{scalable.TemplateOf(object, t.clusters.Cluster)})
}

// OfReferenced returns, for an object of a kind that templates refer to, the template that it was
// generated for. Any template can refer to an object that was not generated. A generated object of
// another Cluster is of no template here.
func (t *Templates) OfReferenced(ctx context.Context, object client.Object) []string {
	if _, generated := object.GetLabels()[v1alpha1.TemplateLabel]; generated {
		return t.OfGenerated(ctx, object)
	}
	return t.All(ctx, object)
}

// OfResource returns the template that a scalable resource was generated from. For any other
// MachineDeployment or MachinePool it returns the templates that discover such.
func (t *Templates) OfResource(ctx context.Context, object client.Object) []string {
	name := object.GetLabels()[v1alpha1.TemplateLabel]
	if name != "" && !scalable.Adopted(object) {
		return []string{name}
	}
	return t.names(ctx, func(template *v1alpha1.KarpenterMachineTemplate) bool {
		return template.Name == name || template.Spec.Discovery != nil && template.Spec.Discovery.MachineDeployments != nil
	})
}

// OfPattern returns the templates that follow a MachineDeployment.
func (t *Templates) OfPattern(ctx context.Context, object client.Object) []string {
	deployment, isDeployment := object.(*clusterv1.MachineDeployment)
	return t.names(ctx, func(template *v1alpha1.KarpenterMachineTemplate) bool {
		return isDeployment && pattern.Named(template, deployment)
	})
}

// OfCatalog returns the templates that refer to an InstanceTypeCatalog.
func (t *Templates) OfCatalog(ctx context.Context, object client.Object) []string {
	return t.names(ctx, func(template *v1alpha1.KarpenterMachineTemplate) bool {
		return template.RefersTo(object.GetName())
	})
}

// OfClaim returns the template of a NodeClaim.
func (t *Templates) OfClaim(_ context.Context, object client.Object) []string {
	claim, isClaim := object.(*karpv1.NodeClaim)
	if !isClaim || !clients.IsTemplate(claim.Spec.NodeClassRef) {
		return nil
	}
	return []string{claim.Spec.NodeClassRef.Name}
}

// OfPool returns the template of a NodePool.
func (t *Templates) OfPool(_ context.Context, object client.Object) []string {
	pool, isPool := object.(*karpv1.NodePool)
	if !isPool || !clients.IsTemplate(pool.Spec.Template.Spec.NodeClassRef) {
		return nil
	}
	return []string{pool.Spec.Template.Spec.NodeClassRef.Name}
}

// OfNode returns the template of the Node that has the name of an object, such as a CSINode. Karpenter labels a Node when it
// registers it.
func (t *Templates) OfNode(ctx context.Context, object client.Object) []string {
	return t.ofNode(ctx, object.GetName())
}

// OfSlice returns the template of the Node whose devices a ResourceSlice has.
func (t *Templates) OfSlice(ctx context.Context, object client.Object) []string {
	slice, is := object.(*resourcev1.ResourceSlice)
	if !is || lo.FromPtr(slice.Spec.NodeName) == "" {
		return nil
	}
	return t.ofNode(ctx, *slice.Spec.NodeName)
}

func (t *Templates) ofNode(ctx context.Context, name string) []string {
	node := &corev1.Node{}
	if err := t.clusters.Workload.GetClient().Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy); err != nil {
		if !apierrors.IsNotFound(err) {
			log.FromContext(ctx).Error(err, "getting Node", "Node", name)
		}
		return nil
	}
	return lo.Compact([]string{node.Labels[clients.NodeTemplateLabel]})
}

// Now enqueues the templates of an object at once.
func Now(templates func(context.Context, client.Object) []string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return lo.Map(templates(ctx, object), func(name string, _ int) reconcile.Request { return request(name) })
	})
}

// Later enqueues the templates of an object at the end of a window, which is longer if only its status has changed.
func (s *Spacing) Later(templates func(context.Context, client.Object) []string) handler.EventHandler {
	add := func(ctx context.Context, q queue, object client.Object, of urgency) {
		for _, name := range templates(ctx, object) {
			s.add(q, name, of)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object, ofTemplateChange) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				add(ctx, q, e.ObjectOld, ofTemplateChange) // its adoption has ended, or a user has removed its label
				add(ctx, q, e.ObjectNew, ofTemplateChange)
				return
			}
			of := ofTemplateChange
			if e.ObjectOld.GetGeneration() == e.ObjectNew.GetGeneration() {
				of = ofTemplateStatus
			}
			add(ctx, q, e.ObjectNew, of)
		},
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, ofTemplateChange) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { add(ctx, q, e.Object, ofTemplateChange) },
	}
}
