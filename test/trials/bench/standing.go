// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/apis"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/workload"
)

const (
	// copiedAtOnce is how many Nodes are copied at once.
	copiedAtOnce = 16
	// standingWithin is how long everything has to accept a Node that was copied.
	standingWithin = 500 * time.Millisecond
)

// standingName is the name of a Deployment whose Pods run on Nodes that exist before the load.
func standingName(offering int) string { return fmt.Sprintf("standing-%d", offering+1) }

// stand lets Nodes exist before the load, each with a Pod, a NodeClaim, a Machine and an instance. The first one of each offering is
// created as those of the load are. The others are copies of its objects, because two cores need hours to create 5,000 Nodes.
//
// Whatever would act on half a Node is stopped in the meantime, and the Cluster is paused, as it is while clusterctl move creates the
// objects of Cluster API in another cluster.
func (t *trial) stand(ctx context.Context) error {
	if t.standing == 0 {
		return nil
	}
	for i := range t.offerings {
		deployment := workload.Deployment(standingName(i), podLabels, map[string]string{corev1.LabelTopologyZone: zoneName(i)})
		deployment.Spec.Replicas = new(int32(1))
		if err := t.Workload.Create(ctx, deployment); err != nil {
			return fmt.Errorf("creating Deployment %s: %w", deployment.Name, err)
		}
	}
	if _, err := t.await(ctx, "the Nodes that are copied to be ready", t.settled, t.offerings); err != nil {
		return err
	}
	// Then the copies have the condition of core's first check, which it otherwise writes for each of them at its next start.
	if _, err := t.restart(ctx, nil); err != nil {
		return err
	}
	began := time.Now()
	if err := t.whileNothingActs(ctx, func() error { return t.copyAll(ctx) }); err != nil {
		return err
	}
	fmt.Printf("    %d copies of Nodes were accepted after %.0f s\n", t.standing-t.offerings, time.Since(began).Seconds())
	if _, err := t.await(ctx, "the copied Nodes to be ready", t.settled, t.standing); err != nil {
		return err
	}
	t.timeline.setAside()
	return nil
}

// whileNothingActs calls a function while nothing acts on NodeClaims, Machines, instances, Nodes and Pods, except kwok.
func (t *trial) whileNothingActs(ctx context.Context, f func() error) error {
	for _, component := range []string{stack.Operator, stack.Infrastructure, stack.Scheduler, stack.ControllerManager} {
		if err := t.StopComponent(ctx, component); err != nil {
			return err
		}
	}
	if err := errors.Join(t.pause(ctx, true), t.paused(ctx)); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if err := t.pause(ctx, false); err != nil {
		return err
	}
	// The scheduler starts with the controller manager.
	for _, component := range []string{stack.ControllerManager, stack.Infrastructure} {
		if err := t.StartComponent(ctx, component); err != nil {
			return err
		}
	}
	if err := t.accepted(ctx); err != nil {
		return err
	}
	return t.StartComponent(ctx, stack.Operator)
}

// accepted waits until the owners of the copies have counted them. Until then, there is hardly any CPU time for the start of the operator.
func (t *trial) accepted(ctx context.Context) error {
	return stack.Await(ctx, t.within(), "the copies to be accepted", func(ctx context.Context) (bool, string, error) {
		machines, pods := &clusterv1.MachineDeploymentList{}, &appsv1.DeploymentList{}
		if err := errors.Join(t.Management.List(ctx, machines), t.Workload.List(ctx, pods, client.MatchingLabels(podLabels))); err != nil {
			return false, err.Error(), nil
		}
		ready := lo.SumBy(machines.Items, func(of clusterv1.MachineDeployment) int32 { return lo.FromPtr(of.Status.ReadyReplicas) })
		running := lo.SumBy(pods.Items, func(of appsv1.Deployment) int32 { return of.Status.ReadyReplicas })
		return int(min(ready, running)) == t.standing, fmt.Sprintf("%d Machines and %d Pods are ready", ready, running), nil
	})
}

// pause pauses the Cluster, or continues it.
func (t *trial) pause(ctx context.Context, paused bool) error {
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = stack.ClusterNamespace, stack.ClusterName
	patch := fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused)
	if err := t.Management.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("pausing Cluster %s (%t): %w", cluster.Name, paused, err)
	}
	return nil
}

// paused waits until Cluster API has noted on each Machine that the Cluster is paused, so that the copies have that condition, too.
func (t *trial) paused(ctx context.Context) error {
	return stack.Await(ctx, readyWithin, "the Machines to be paused", func(ctx context.Context) (bool, string, error) {
		machines := &clusterv1.MachineList{}
		if err := t.Management.List(ctx, machines, stack.Workers); err != nil {
			return false, err.Error(), nil
		}
		waiting := lo.CountBy(machines.Items, func(machine clusterv1.Machine) bool { return !conditions.IsTrue(&machine, clusterv1.PausedCondition) })
		return waiting == 0, fmt.Sprintf("%d are not", waiting), nil
	})
}

// node are the objects of one Node. Each refers by UID only to those before it.
type node struct {
	claim, machine, instance, node, pod *unstructured.Unstructured
}

// originals returns the objects of the Node of each offering, by the name of its zone.
func (t *trial) originals(ctx context.Context) (map[string]node, error) {
	list := func(c client.Client, kind schema.GroupVersionKind, of ...client.ListOption) ([]*unstructured.Unstructured, error) {
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(kind)
		if err := c.List(ctx, found, of...); err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		return lo.ToSlicePtr(found.Items), nil
	}
	claims, err := list(t.Workload, schema.GroupVersionKind{Group: apis.Group, Version: "v1", Kind: "NodeClaim"})
	machines, machinesErr := list(t.Management, clusterv1.GroupVersion.WithKind("Machine"), stack.Workers)
	instances, instancesErr := list(t.Management, infrav1.GroupVersion.WithKind("SimulatedMachine"), stack.Workers)
	nodes, nodesErr := list(t.Workload, corev1.SchemeGroupVersion.WithKind("Node"), stack.Workers)
	pods, podsErr := list(t.Workload, corev1.SchemeGroupVersion.WithKind("Pod"), client.MatchingLabels(podLabels))
	if err := errors.Join(err, machinesErr, instancesErr, nodesErr, podsErr); err != nil {
		return nil, err
	}
	byName := func(of *unstructured.Unstructured) string { return of.GetName() }
	machineOf := lo.KeyBy(machines, func(of *unstructured.Unstructured) string { return of.GetLabels()[v1alpha1.NodeClaimUIDLabel] })
	instanceOf, nodeNamed := lo.KeyBy(instances, byName), lo.KeyBy(nodes, byName)
	podOn := lo.KeyBy(pods, func(of *unstructured.Unstructured) string { return text(of, "spec", "nodeName") })
	found := map[string]node{}
	for _, claim := range claims {
		name := text(claim, "status", "nodeName")
		original := node{claim: claim, machine: machineOf[string(claim.GetUID())], node: nodeNamed[name], pod: podOn[name]}
		if original.machine != nil {
			original.instance = instanceOf[text(original.machine, "spec", "infrastructureRef", "name")]
		}
		if original.machine == nil || original.instance == nil || original.node == nil || original.pod == nil {
			return nil, fmt.Errorf("NodeClaim %s: expected a Machine, an instance, a Node and a Pod", claim.GetName())
		}
		found[original.node.GetLabels()[corev1.LabelTopologyZone]] = original
	}
	return found, nil
}

// text returns a text in an object; empty if there is none.
func text(in *unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(in.Object, path...)
	return found
}

// copyAll copies the Node of each offering until there are as many as there must be, and sets the replicas of their owners.
func (t *trial) copyAll(ctx context.Context) error {
	originals, err := t.originals(ctx)
	if err != nil {
		return err
	}
	copies, ctx := errgroup.WithContext(ctx)
	copies.SetLimit(copiedAtOnce)
	for i := range t.offerings {
		original, found := originals[zoneName(i)]
		if !found {
			return fmt.Errorf("zone %s has no Node", zoneName(i))
		}
		share := shareOf(t.standing, t.offerings, i)
		for n := range share - 1 {
			copies.Go(func() error { return t.copyNode(ctx, original, fmt.Sprintf("-%d", n+1)) })
		}
		copies.Go(func() error { return t.setReplicas(ctx, standingName(i), original, share) })
	}
	return copies.Wait()
}

// setReplicas sets the replicas of the owners of a Node's Pod and Machine.
func (t *trial) setReplicas(ctx context.Context, deployment string, of node, replicas int) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	for _, owner := range []struct {
		c       client.Client
		version string
		kind    string
		name    string
	}{
		{t.Workload, "apps/v1", "Deployment", deployment},
		{t.Workload, "apps/v1", "ReplicaSet", of.pod.GetOwnerReferences()[0].Name},
		{t.Management, clusterv1.GroupVersion.String(), "MachineDeployment", of.machine.GetLabels()[clusterv1.MachineDeploymentNameLabel]},
		{t.Management, clusterv1.GroupVersion.String(), "MachineSet", of.machine.GetLabels()[clusterv1.MachineSetNameLabel]},
	} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(owner.version)
		object.SetKind(owner.kind)
		object.SetNamespace(stack.ClusterNamespace)
		object.SetName(owner.name)
		if err := owner.c.Patch(ctx, object, patch); err != nil {
			return fmt.Errorf("setting the replicas of %s %s to %d: %w", owner.kind, owner.name, replicas, err)
		}
	}
	return nil
}

// copyNode creates copies of the objects of a Node, whose names end with a suffix, and which refer to each other as the originals do.
func (t *trial) copyNode(ctx context.Context, original node, suffix string) error {
	// The instance has its UID in its provider ID, which the objects before it have, too.
	replaced := []string{string(original.instance.GetUID()), string(uuid.NewUUID())}
	for _, object := range []*unstructured.Unstructured{original.claim, original.machine, original.instance, original.node, original.pod} {
		replaced = append(replaced, object.GetName(), object.GetName()+suffix)
	}
	for _, of := range []struct {
		object *unstructured.Unstructured
		c      client.Client
	}{{original.claim, t.Workload}, {original.machine, t.Management}, {original.instance, t.Management}, {original.node, t.Workload}, {original.pod, t.Workload}} {
		created, err := copyObject(ctx, of.c, of.object, strings.NewReplacer(replaced...))
		if err != nil {
			return err
		}
		replaced = append(replaced, string(of.object.GetUID()), string(created.GetUID()))
	}
	return nil
}

// copyObject creates a copy of an object with other names and UIDs.
func copyObject(ctx context.Context, c client.Client, original *unstructured.Unstructured, names *strings.Replacer) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(original)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(names.Replace(string(data))), object); err != nil {
		return nil, err
	}
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	wanted := object.DeepCopy()
	firstGeneration(wanted)
	if err := c.Create(ctx, object); err != nil {
		return nil, fmt.Errorf("copying %s %s: %w", original.GetKind(), original.GetName(), err)
	}
	// kwok writes the status of the Pods.
	if original.GetKind() != "Node" && original.GetKind() != "Pod" {
		status, err := json.Marshal(map[string]any{"status": wanted.Object["status"]})
		if err != nil {
			return nil, err
		}
		if err := c.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, status)); err != nil {
			return nil, fmt.Errorf("copying the status of %s %s: %w", original.GetKind(), original.GetName(), err)
		}
	}
	// The API server taints each new Node (admission plugin TaintNodesByCondition).
	if original.GetKind() == "Node" {
		if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`))); err != nil {
			return nil, fmt.Errorf("removing the taints of Node %s: %w", object.GetName(), err)
		}
	}
	return object, nil
}

// firstGeneration sets the generation that the status of an object is about to that of a new one. Otherwise each controller writes it again.
func firstGeneration(object *unstructured.Unstructured) {
	const field = "observedGeneration"
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, condition := range conditions {
		if fields, is := condition.(map[string]any); is && fields[field] != nil {
			fields[field] = int64(1)
		}
	}
	if conditions != nil {
		status["conditions"] = conditions
	}
	if status[field] != nil {
		status[field] = int64(1)
	}
	if status != nil {
		object.Object["status"] = status
	}
}
