// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// observe fills a timeline until the context ends. It returns when all watches have begun.
//
// The watches must cost little, because they run on the measured machine. Therefore that of simulated machines receives
// only the metadata.
func observe(ctx context.Context, on *stack.Stack) (*timeline, error) {
	config, err := clientcmd.BuildConfigFromFlags("", on.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "bench/watch"
	scheme, err := stack.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	instances := &metav1.PartialObjectMetadataList{}
	instances.SetGroupVersionKind(infrav1.GroupVersion.WithKind("SimulatedMachineList"))
	t := newTimeline()
	inNamespace := client.InNamespace(stack.ClusterNamespace)
	return t, errors.Join(
		follow(ctx, c, &corev1.PodList{}, &corev1.Pod{}, t.observePod, inNamespace),
		follow(ctx, c, &corev1.NodeList{}, &corev1.Node{}, t.observeNode, stack.Workers),
		follow(ctx, c, &karpv1.NodeClaimList{}, &karpv1.NodeClaim{}, t.observeClaim),
		follow(ctx, c, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineDeployment{}, t.observeMachineDeployment, inNamespace),
		follow(ctx, c, &clusterv1.MachineList{}, &clusterv1.Machine{}, t.observeMachine, inNamespace),
		follow(ctx, c, instances, &metav1.PartialObjectMetadata{}, t.observeInstance, inNamespace),
	)
}

// follow calls a function with each version of the objects of a kind.
func follow[O client.Object](ctx context.Context, c client.WithWatch, list client.ObjectList, example O, observe func(O, bool, time.Time), of ...client.ListOption) error {
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			found := list.DeepCopyObject().(client.ObjectList)
			return found, c.List(ctx, found, append(of, &client.ListOptions{Raw: &options})...)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), append(of, &client.ListOptions{Raw: &options})...)
		},
	}
	handle := func(object any, deleted bool) {
		if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if typed, ok := object.(O); ok {
			observe(typed, deleted, time.Now())
		}
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    example,
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { handle(object, false) },
			UpdateFunc: func(_, object any) { handle(object, false) },
			DeleteFunc: func(object any) { handle(object, true) },
		},
	})
	go informer.RunWithContext(ctx)
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watching %T: %w", list, context.Cause(ctx))
	}
	return nil
}
