// SPDX-License-Identifier: Apache-2.0

//go:build install

package upgrade

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/install"
)

const (
	// How many Nodes run, and how many are being launched, at each change of the version.
	running, launching = 50, 10
	// bootTime is how long a machine takes to join, which is longer than a change of the version.
	bootTime = 45 * time.Second
)

// A way to install the operator. Each function leaves the process to the test.
type way struct {
	install, upgrade, back func()
}

func TestUpgrade(t *testing.T) {
	previous, next := install.PreviousSource(t), install.ThisSource()
	for _, placement := range []stack.Placement{stack.Joined, stack.InManagement} {
		for name, open := range map[string]func(context.Context, *testing.T, *stack.Stack, install.Source, install.Source) way{
			"Helm": withHelm, "clusterctl": withClusterctl,
		} {
			t.Run(fmt.Sprintf("%s-%s", name, placement), func(t *testing.T) {
				ctx, s := install.NewStack(t, placement)
				upgrade(ctx, t, s, open(ctx, t, s, previous, next), previous.Binary, next.Binary)
			})
		}
	}
}

// upgrade installs the previous operator, changes to the next one and back, each time while Nodes run and others are being launched.
func upgrade(ctx context.Context, t *testing.T, s *stack.Stack, use way, previous, next string) {
	g := NewWithT(t)
	use.install()
	operator := install.Start(ctx, t, s, previous)
	g.Expect(s.Create(ctx, slowMachines(g))).To(Succeed())
	scale(ctx, g, s, running)
	awaitNodes(ctx, g, s, running)
	pods := running
	for _, step := range []struct {
		change func()
		binary string
	}{{use.upgrade, next}, {use.back, previous}} {
		pods += launching
		before := launch(ctx, g, s, pods)
		operator.Stop()
		step.change()
		operator = install.Start(ctx, t, s, step.binary)
		awaitNodes(ctx, g, s, pods)
		g.Expect(lo.PickByKeys(standing(ctx, g, s), lo.Keys(before))).To(Equal(before), "what was there before")
	}
	scale(ctx, g, s, 0)
	g.Eventually(ctx, func(g Gomega) {
		g.Expect(standing(ctx, g, s)).To(BeEmpty())
	}).WithTimeout(5 * time.Minute).WithPolling(install.Poll).Should(Succeed())
	operator.Stop()
	install.CheckDenied(t, s)
}

// slowMachines returns the objects of install.General, with a Node for each Pod, slow machines and no Pods yet.
func slowMachines(g *WithT) []byte {
	changed := install.General
	for old, new := range map[string]string{
		"nodeJoin: {duration: 1s}": fmt.Sprintf("nodeJoin: {duration: %s}", bootTime), "replicas: 3": "replicas: 0", `cpu: "1", memory: 1Gi`: `cpu: 1500m, memory: 1Gi`,
	} {
		g.Expect(bytes.Count(changed, []byte(old))).To(Equal(1), old)
		changed = bytes.ReplaceAll(changed, []byte(old), []byte(new))
	}
	return changed
}

// scale sets the number of Pods.
func scale(ctx context.Context, g *WithT, s *stack.Stack, pods int) {
	deployment := &appsv1.Deployment{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "general"}, deployment)).To(Succeed())
	changed := deployment.DeepCopy()
	changed.Spec.Replicas = new(int32(pods))
	g.Expect(s.Workload.Patch(ctx, changed, client.MergeFrom(deployment))).To(Succeed())
}

// awaitNodes waits until as many Pods run, each with a NodeClaim, a Machine and a Node of its own, and nothing else exists.
func awaitNodes(ctx context.Context, g *WithT, s *stack.Stack, count int) {
	g.Eventually(ctx, func(g Gomega) {
		g.Expect(install.RunningPods(ctx, s)).To(Equal(count), "Pods that run")
		for kind, objects := range byKind(standing(ctx, g, s)) {
			if kind == "NodeClaim" || kind == "Machine" || kind == "Node" {
				g.Expect(objects).To(HaveLen(count), kind)
			}
		}
	}).WithTimeout(10 * time.Minute).WithPolling(install.Poll).Should(Succeed())
}

// launch adds Pods, and waits until their Machines are linked. It returns what exists before their Nodes join.
func launch(ctx context.Context, g *WithT, s *stack.Stack, pods int) map[string]string {
	scale(ctx, g, s, pods)
	var exists map[string]string
	g.Eventually(ctx, func(g Gomega) {
		exists = standing(ctx, g, s)
		of := byKind(exists)
		g.Expect(of["NodeClaim"]).To(HaveLen(pods))
		linked := lo.Filter(of["Machine"], func(key string, _ int) bool { return strings.Contains(exists[key], " for ") })
		g.Expect(linked).To(HaveLen(pods), "Machines that are linked")
		g.Expect(of["Node"]).To(HaveLen(pods-launching), "Nodes: those of the other Pods must join later")
	}).WithTimeout(time.Minute).WithPolling(install.Poll).Should(Succeed())
	return exists
}

// byKind returns the keys of standing by kind.
func byKind(objects map[string]string) map[string][]string {
	return lo.GroupBy(lo.Keys(objects), func(key string) string { kind, _, _ := strings.Cut(key, " "); return kind })
}

// standing returns what must survive: the identity of NodeClaims, Nodes and Machines, and what links these; and those of what was
// generated, if it has replicas.
func standing(ctx context.Context, g Gomega, s *stack.Stack) map[string]string {
	all := map[string]string{}
	claims, nodes, machines := &karpv1.NodeClaimList{}, &corev1.NodeList{}, &clusterv1.MachineList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	for _, claim := range claims.Items {
		all["NodeClaim "+claim.Name] = identity(&claim)
	}
	g.Expect(s.Workload.List(ctx, nodes, stack.Workers)).To(Succeed())
	for _, node := range nodes.Items {
		all["Node "+node.Name] = fmt.Sprintf("%s %s", identity(&node), node.Spec.ProviderID)
	}
	g.Expect(s.Management.List(ctx, machines)).To(Succeed())
	for _, machine := range machines.Items {
		all["Machine "+machine.Name] = identity(&machine)
		if uid := lifecycle.ClaimUID(&machine); uid != "" {
			all["Machine "+machine.Name] += fmt.Sprintf(" for %s %s", lifecycle.ClaimName(&machine), uid)
		}
	}
	resources, err := kinds.Resources(ctx, s.Management)
	g.Expect(err).NotTo(HaveOccurred())
	for _, resource := range resources {
		if resource.Replicas > 0 {
			all[string(resource.Kind)+" "+resource.Name] = "generated"
		}
	}
	return all
}

func identity(object client.Object) string {
	return fmt.Sprintf("%s, deleted %t", object.GetUID(), !object.GetDeletionTimestamp().IsZero())
}
