// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const (
	hostGroup = "hosts.example.com"
	// fallback is an instance type that costs more and is not counted.
	fallback = "another"
	// byConsumer is the expression of a host that is free while no Machine uses it.
	byConsumer = "object.?spec.consumer.orValue('') == ''"
)

// inventory is a kind of hosts in the management cluster, and the hosts of one spec.
type inventory struct {
	crd *apiextensionsv1.CustomResourceDefinition
}

// newInventory installs the kind of hosts, and gives the operator the rights to it that the chart gives for rbac.inventoryKinds.
func newInventory(ctx context.Context) *inventory {
	GinkgoHelper()
	preserve := true
	i := &inventory{crd: &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "testhosts." + hostGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: hostGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "testhosts", Singular: "testhost", Kind: "TestHost", ListKind: "TestHostList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}},
			}},
		},
	}}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "testhosts"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{hostGroup}, Resources: []string{"testhosts"}, Verbs: []string{"list", "watch"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: operatorAccount}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}
	for _, object := range []client.Object{role, binding} {
		Expect(env.client.Create(ctx, object)).To(Succeed())
	}
	i.install(ctx)
	DeferCleanup(func(ctx SpecContext) { // the roles stay, so that the last requests of the watch are not forbidden
		Expect(client.IgnoreNotFound(env.crds.Delete(ctx, i.crd))).To(Succeed())
	})
	return i
}

func (i *inventory) install(ctx context.Context) {
	GinkgoHelper()
	Expect(env.crds.Create(ctx, i.crd.DeepCopy())).To(Succeed())
	Eventually(ctx, func() error { return env.client.List(ctx, hostList(), client.InNamespace(served.Namespace)) }).Should(Succeed())
}

func (i *inventory) uninstall(ctx context.Context) {
	GinkgoHelper()
	Expect(env.crds.Delete(ctx, i.crd.DeepCopy())).To(Succeed())
	Eventually(ctx, func() error {
		return client.IgnoreNotFound(env.crds.Get(ctx, client.ObjectKeyFromObject(i.crd), i.crd.DeepCopy()))
	}).Should(Succeed())
	Eventually(ctx, func() error { return env.client.List(ctx, hostList(), client.InNamespace(served.Namespace)) }).ShouldNot(Succeed())
}

func hostList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(hostGroup + "/v1")
	list.SetKind("TestHostList")
	return list
}

// add creates hosts.
func (i *inventory) add(ctx context.Context, owner string, count int) {
	GinkgoHelper()
	for n := range count {
		host := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		host.SetAPIVersion(hostGroup + "/v1")
		host.SetKind("TestHost")
		host.SetNamespace(served.Namespace)
		host.SetName(fmt.Sprintf("%s-%d", owner, n))
		host.SetLabels(map[string]string{"owner": owner, "type": instanceType})
		Expect(env.client.Create(ctx, host)).To(Succeed())
	}
}

// use lets each of some Machines use a host, and frees the hosts of Machines that no longer exist, as Metal3 does.
func (i *inventory) use(ctx context.Context, machines []clusterv1.Machine) {
	GinkgoHelper()
	list := hostList()
	Expect(env.client.List(ctx, list, client.InNamespace(served.Namespace))).To(Succeed())
	waiting := lo.Map(machines, func(m clusterv1.Machine, _ int) string { return m.Name })
	consumerOf := func(host *unstructured.Unstructured) string {
		name, _, _ := unstructured.NestedString(host.Object, "spec", "consumer")
		return name
	}
	set := func(host *unstructured.Unstructured, name string) {
		Expect(unstructured.SetNestedField(host.Object, name, "spec", "consumer")).To(Succeed())
		Expect(env.client.Update(ctx, host)).To(Succeed())
	}
	for n := range list.Items {
		if name := consumerOf(&list.Items[n]); name != "" && !lo.Contains(waiting, name) {
			set(&list.Items[n], "")
		} else {
			waiting = lo.Without(waiting, name)
		}
	}
	for n := range list.Items {
		if consumerOf(&list.Items[n]) == "" && len(waiting) > 0 {
			set(&list.Items[n], waiting[0])
			waiting = waiting[1:]
		}
	}
	Expect(waiting).To(BeEmpty(), "these Machines have no host")
}

// counted returns a fixture whose instance type is counted, and that has another one which costs more.
func counted(name string) *fixture {
	f := machineDeployments.newFixture(name).delays(never, never, never)
	types := &f.catalog.Spec.InstanceTypes
	more := *(*types)[0].DeepCopy()
	more.Name, more.Offerings[0].Price = fallback, "0.9"
	*types = append(*types, more)
	(*types)[0].Offerings[0].CapacityFrom = []v1alpha1.CapacitySource{{
		APIVersion: hostGroup + "/v1", Kind: "TestHost", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"owner": name}},
		InstanceTypeLabel: "type", Free: byConsumer, Consumer: "object.?spec.consumer.orValue('')",
	}}
	return f
}

// ofType returns the live Machines of an instance type.
func (f *fixture) ofType(ctx context.Context, name string) []clusterv1.Machine {
	GinkgoHelper()
	return lo.Filter(f.machines(ctx), func(m clusterv1.Machine, _ int) bool {
		return m.Labels[v1alpha1.InstanceTypeLabel] == name && m.DeletionTimestamp.IsZero()
	})
}

// message returns the message of the counted offering in the status; empty if it has none.
func (f *fixture) message(ctx context.Context) string {
	GinkgoHelper()
	Expect(env.get(ctx, f.template)).To(Succeed())
	found, _ := lo.Find(f.template.Status.LimitedOfferings, func(o v1alpha1.LimitedOffering) bool { return o.InstanceType == instanceType })
	return found.Message
}

var _ = Describe("An inventory", Ordered, func() {
	const own, other = instanceType + "/" + zone + "/" + karpv1.CapacityTypeOnDemand, fallback + "/" + zone + "/" + karpv1.CapacityTypeOnDemand
	var hosts *inventory

	BeforeAll(func(ctx SpecContext) { hosts = newInventory(ctx) })

	It("limits launches, and closes and opens its offering", func(ctx SpecContext) {
		f := counted("inventory")
		hosts.add(ctx, f.name, 3)
		f.createReady(ctx)
		machines := f.watchMachines(ctx)
		f.launch(ctx, 5)
		Eventually(ctx, func(g Gomega) {
			g.Expect(f.ofType(ctx, instanceType)).To(HaveLen(3))
			g.Expect(f.ofType(ctx, fallback)).To(HaveLen(2))
		}).Should(Succeed())
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(HaveLen(5), "none was created in excess")
		Eventually(ctx, func() string { return f.message(ctx) }).Should(Equal("3 of 3 TestHosts with labels owner=inventory,type=standard are free, for 3 machines that are being launched"))
		Expect(f.offerings(ctx)).To(Equal(map[string]bool{own: false, other: true}))

		By("letting the Machines use the hosts: none counts twice")
		hosts.use(ctx, f.ofType(ctx, instanceType))
		Eventually(ctx, func() string { return f.message(ctx) }).Should(Equal("3 of 3 TestHosts with labels owner=inventory,type=standard are in use or unavailable"))
		Expect(f.all(ctx)).To(HaveLen(5))

		By("freeing a host: the next claim gets it")
		claim, _ := lo.Find(f.all(ctx), func(c karpv1.NodeClaim) bool { return c.Labels[corev1.LabelInstanceTypeStable] == instanceType })
		env.delete(ctx, &claim)
		env.waitGone(ctx, &claim)
		Eventually(ctx, func() []clusterv1.Machine { return f.ofType(ctx, instanceType) }).Should(HaveLen(2))
		hosts.use(ctx, f.ofType(ctx, instanceType))
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(Equal(map[string]bool{own: true, other: true}))
		f.launch(ctx, 2)
		Eventually(ctx, func(g Gomega) {
			g.Expect(f.ofType(ctx, instanceType)).To(HaveLen(3))
			g.Expect(f.ofType(ctx, fallback)).To(HaveLen(3))
		}).Should(Succeed())
		f.caughtUp(ctx)
		Expect(machines.everCreated()).To(HaveLen(7))
	})

	It("that cannot be counted closes nothing, and a condition says why", func(ctx SpecContext) {
		f := counted("uncounted")
		f.createReady(ctx) // there are no hosts
		Eventually(ctx, func() string { return f.message(ctx) }).Should(Equal("there are no TestHosts with labels owner=uncounted,type=standard"))
		expectProblem := func(reason string, words ...string) {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega) {
				g.Expect(env.get(ctx, f.template)).To(Succeed())
				condition := f.template.StatusConditions().Get(v1alpha1.ConditionOfferingsValid)
				g.Expect(condition.Reason).To(Equal(reason), condition.Message)
				for _, word := range words {
					g.Expect(condition.Message).To(ContainSubstring(word))
				}
			}).Should(Succeed())
		}
		source := &f.catalog.Spec.InstanceTypes[0].Offerings[0].CapacityFrom[0]

		By("failing for a host")
		hosts.add(ctx, f.name, 1)
		env.change(ctx, f.catalog, func() { f.catalog.Spec.InstanceTypes[0].Offerings[0].CapacityFrom[0].Free = "object.spec.no.such" })
		expectProblem(v1alpha1.ReasonCapacityNotCounted, "TestHost uncounted-0: free: no such key: no")
		Expect(f.message(ctx)).To(BeEmpty())
		Expect(f.offerings(ctx)).To(HaveKeyWithValue(own, true))

		By("not compiling")
		env.change(ctx, f.catalog, func() { f.catalog.Spec.InstanceTypes[0].Offerings[0].CapacityFrom[0].Free = "object." })
		expectProblem(v1alpha1.ReasonInstanceTypesInvalid, instanceType, "capacityFrom[0].free: the expression does not compile")
		Expect(f.offerings(ctx)).NotTo(HaveKey(own))

		By("being lost with its kind")
		env.change(ctx, f.catalog, func() { f.catalog.Spec.InstanceTypes[0].Offerings[0].CapacityFrom[0].Free = "false" })
		Eventually(ctx, func() string { return f.message(ctx) }).Should(ContainSubstring("1 of 1 TestHosts"))
		Expect(f.offerings(ctx)).To(HaveKeyWithValue(own, false))
		hosts.uninstall(ctx)
		expectProblem(v1alpha1.ReasonCapacityNotCounted, "TestHosts", source.Selector.MatchLabels["owner"])
		Eventually(ctx, func() map[string]bool { return f.offerings(ctx) }).Should(HaveKeyWithValue(own, true))
		Expect(env.operator.Clusters.Guard(ctx)).To(Succeed(), "nothing else waits")
		env.waitMachine(ctx, f.launchOne(ctx))

		By("being counted again")
		hosts.install(ctx)
		Eventually(ctx, func() string { return f.message(ctx) }).Should(ContainSubstring("there are no TestHosts"))
	})
})
