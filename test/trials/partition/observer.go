// SPDX-License-Identifier: Apache-2.0

package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// observer sees the Pods, NodeClaims and Nodes of the workload cluster, without a proxy. It finds claims and Nodes that
// are removed while Pods run there. Karpenter deletes a claim only when its Node has been empty for 5 s, so it does not
// matter that events of different kinds are in no common order.
type observer struct {
	mutex sync.Mutex
	// pods are the Pods that run and are not being deleted, by their keys, with the names of their Nodes.
	pods map[client.ObjectKey]string
	// claims are the NodeClaims that exist, by UID.
	claims map[types.UID]phase
	// lost describes what was removed, and reported has the names of these Nodes.
	lost     []string
	reported map[string]bool
	// watched is whether claims in flight are recorded, which inFlight are.
	watched  bool
	inFlight map[types.UID]bool
}

// phase is the phase of a NodeClaim.
type phase int

const (
	launching phase = iota
	running
	deleting
)

// newObserver returns an observer that knows all objects, and ends with the context.
func newObserver(ctx context.Context, kubeconfig string) (*observer, error) {
	w := newEmptyObserver()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	objects, err := cache.New(config, cache.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, err
	}
	for _, object := range []client.Object{&corev1.Pod{}, &corev1.Node{}, &karpv1.NodeClaim{}} {
		informer, err := objects.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    w.see,
			UpdateFunc: func(_, object any) { w.see(object) },
			DeleteFunc: w.seeRemoval,
		}); err != nil {
			return nil, err
		}
	}
	go objects.Start(ctx) //nolint:errcheck // It ends with the context.
	if !objects.WaitForCacheSync(ctx) {
		return nil, errors.New("the Pods, Nodes and NodeClaims cannot be watched")
	}
	return w, nil
}

func newEmptyObserver() *observer {
	return &observer{pods: map[client.ObjectKey]string{}, claims: map[types.UID]phase{}, reported: map[string]bool{}, inFlight: map[types.UID]bool{}}
}

// see records the state of an object.
func (w *observer) see(object any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch object := object.(type) {
	case *corev1.Pod:
		delete(w.pods, client.ObjectKeyFromObject(object))
		if object.Status.Phase == corev1.PodRunning && object.DeletionTimestamp.IsZero() {
			w.pods[client.ObjectKeyFromObject(object)] = object.Spec.NodeName
		}
	case *karpv1.NodeClaim:
		now := phaseOf(object)
		if before, known := w.claims[object.UID]; now == deleting && (!known || before != deleting) {
			w.expectEmpty(object.Status.NodeName, "NodeClaim "+object.Name)
		}
		w.claims[object.UID] = now
		if w.watched && now != running {
			w.inFlight[object.UID] = true
		}
	}
}

// seeRemoval records that an object no longer exists.
func (w *observer) seeRemoval(object any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if unseen, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = unseen.Obj
	}
	switch object := object.(type) {
	case *corev1.Pod:
		delete(w.pods, client.ObjectKeyFromObject(object))
	case *corev1.Node:
		w.expectEmpty(object.Name, "Node "+object.Name)
	case *karpv1.NodeClaim:
		if w.claims[object.UID] != deleting {
			w.expectEmpty(object.Status.NodeName, "NodeClaim "+object.Name)
		}
		delete(w.claims, object.UID)
	}
}

// expectEmpty records a loss if a Pod runs on a Node that is being removed.
func (w *observer) expectEmpty(node, what string) {
	for pod, on := range w.pods {
		if node != "" && on == node && !w.reported[node] {
			w.reported[node] = true
			w.lost = append(w.lost, fmt.Sprintf("%s was removed while Pod %s ran on Node %s", what, pod.Name, node))
		}
	}
}

func phaseOf(claim *karpv1.NodeClaim) phase {
	switch {
	case !claim.DeletionTimestamp.IsZero():
		return deleting
	case claim.DeepCopy().StatusConditions().IsTrue(karpv1.ConditionTypeInitialized):
		return running
	default:
		return launching
	}
}

// begin records from now on which claims are in flight, and end stops that and returns how many were.
func (w *observer) begin() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.watched, w.inFlight = true, map[types.UID]bool{}
	for uid, phase := range w.claims {
		if phase != running {
			w.inFlight[uid] = true
		}
	}
}

func (w *observer) end() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.watched = false
	return len(w.inFlight)
}

// everLost describes what was lost so far.
func (w *observer) everLost() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.lost)
}

// awaits returns a check that some claim is in the given phase.
func (w *observer) awaits(wanted phase) func(context.Context) (bool, string, error) {
	return func(context.Context) (bool, string, error) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, phase := range w.claims {
			if phase == wanted {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("none of %d claims", len(w.claims)), nil
	}
}
