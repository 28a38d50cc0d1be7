// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/offers"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// A ConfigMap in the management cluster has a quota. While nothing is left of it, its offerings are closed before Karpenter chooses
// one, so that no Machine is tried, and a Pod gets another instance type.
func TestInventory(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	g := NewWithT(t)
	labels := map[string]string{"example.com/quota": "cpus"}
	meta := metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: "quota", Labels: labels}
	quota := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"cpus": "2"}}
	for _, object := range []client.Object{
		quota,
		// The rights that the chart gives for rbac.inventoryKinds.
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: stack.ClusterNamespace, Name: stack.Operator}},
		},
	} {
		g.Expect(s.Management.Create(ctx, object)).To(Succeed())
	}
	w := newObserver(ctx, t, s)
	create(ctx, g, s, kinds.MachineDeployment, "general.yaml")
	catalog := &v1alpha1.InstanceTypeCatalog{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "general"}, catalog)).To(Succeed())
	for i := range catalog.Spec.InstanceTypes[0].Offerings {
		catalog.Spec.InstanceTypes[0].Offerings[i].CapacityFrom = []v1alpha1.CapacitySource{{
			APIVersion: "v1", Kind: "ConfigMap", Selector: &metav1.LabelSelector{MatchLabels: labels}, Free: "int(object.data.cpus) / 2",
		}}
	}
	g.Expect(s.Workload.Update(ctx, catalog)).To(Succeed())
	// left waits until the plugin shows what is left for the instance type small, and why nothing is.
	left := func(count int32, unavailable offers.Reason) {
		t.Helper()
		g.Eventually(ctx, func(g Gomega) {
			var found []offers.Offer
			g.Expect(ask(ctx, s, &found, "offerings", "general")).To(Succeed())
			g.Expect(found).To(HaveLen(4))
			for _, offer := range found {
				if offer.InstanceType == "small" {
					g.Expect(offer).To(And(HaveField("Left", HaveValue(Equal(count))), HaveField("Unavailable", unavailable)))
				} else {
					g.Expect(offer).To(And(HaveField("Left", BeNil()), HaveField("Unavailable", offers.Reason{})))
				}
			}
		}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	}
	set := func(cpus string) {
		t.Helper()
		quota.Data["cpus"] = cpus
		g.Expect(s.Management.Update(ctx, quota)).To(Succeed())
	}

	left(1, offers.Reason{})
	g.Expect(runAlone(ctx, g, s, "first").String()).To(Equal("small/zone-b/spot"))
	set("0")
	left(0, offers.Reason{Kind: offers.Full, Message: "1 ConfigMaps with labels example.com/quota=cpus have nothing left"})
	g.Expect(runAlone(ctx, g, s, "second").String()).To(Equal("medium/zone-b/spot"))
	g.Expect(w.machinesEver()).To(Equal(2), "no launch was tried in vain")
	set("4")
	left(2, offers.Reason{})
	g.Expect(runAlone(ctx, g, s, "third").String()).To(Equal("small/zone-b/spot"))
	g.Expect(w.everFailed()).To(BeEmpty(), "NodeClaims that have failed")
	removeAll(ctx, g, s)
}

// runAlone creates a Pod that needs a Node of its own, waits until it runs, and returns the offering of its Node.
func runAlone(ctx context.Context, g *WithT, s *stack.Stack, name string) offering {
	needed := need{name: "alone", of: func(*corev1.PodSpec) {}}
	pod := needed.pod(name)
	g.Expect(s.Workload.Create(ctx, pod)).To(Succeed())
	var node *corev1.Node
	g.Eventually(ctx, func(g Gomega) {
		var err error
		if node, err = nodeOf(ctx, s, pod); apierrors.IsNotFound(err) { // for the reason that expectOn has
			pod = needed.pod(name)
			err = s.Workload.Create(ctx, pod)
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node).NotTo(BeNil(), "Pod %s runs", pod.Name)
	}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())
	return offeringOf(node)
}
