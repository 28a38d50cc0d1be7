// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/awslabs/operatorpkg/controller"
	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// world is a cluster in which tests change objects, and controllers get copies of them.
type world struct {
	client.Client
	objects map[key]client.Object
}

type key struct{ kind, name string }

func newWorld() *world { return &world{objects: map[key]client.Object{}} }

// Get implements client.Client.
func (w *world) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	object, exists := w.objects[key{kindOf(into), name.Name}]
	if !exists {
		return apierrors.NewNotFound(schema.GroupResource{}, name.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
	return nil
}

// create creates an object with a name, now.
func (w *world) create(object client.Object, name string) {
	object.SetName(name)
	object.SetCreationTimestamp(metav1.Now())
	w.objects[key{kindOf(object), name}] = object
}

func (w *world) claim(name string) *karpv1.NodeClaim {
	return w.objects[key{"NodeClaim", name}].(*karpv1.NodeClaim)
}

func (w *world) pool(name string) *karpv1.NodePool {
	return w.objects[key{"NodePool", name}].(*karpv1.NodePool)
}

func (w *world) node(name string) *corev1.Node {
	return w.objects[key{"Node", name}].(*corev1.Node)
}

// copy returns copies of all objects.
func (w *world) copy() map[key]client.Object {
	copies := map[key]client.Object{}
	for k, object := range w.objects {
		copies[k] = object.DeepCopyObject().(client.Object)
	}
	return copies
}

// sorted returns the keys of objects that exist, or existed before, in one order.
func (w *world) sorted(before map[key]client.Object) []key {
	all := maps.Clone(before)
	maps.Copy(all, w.objects)
	return slices.SortedFunc(maps.Keys(all), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

func kindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }

// newStatusControllers returns the status controllers with the options of Karpenter core (karpenter:
// pkg/controllers/controllers.go, NewControllers), by kind.
func newStatusControllers(reader client.Client, recorder record.EventRecorder) map[string]controller.Controller {
	nodeClass := karpv1.NodeClassLabelKey(schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.Kind})
	buckets := status.WithHistogramBuckets(prometheus.ExponentialBuckets(0.5, 2, 15))
	return map[string]controller.Controller{
		"NodeClaim": status.NewController[*karpv1.NodeClaim](reader, recorder, status.EmitDeprecatedMetrics, buckets,
			status.WithLabels(nodeClass, karpv1.NodePoolLabelKey)),
		"NodePool": status.NewController[*karpv1.NodePool](reader, recorder, status.EmitDeprecatedMetrics, buckets),
		"Node": status.NewGenericObjectController[*corev1.Node](reader, recorder, buckets,
			status.WithLabels(nodeClass, karpv1.NodePoolLabelKey, karpv1.NodeInitializedLabelKey)),
	}
}
