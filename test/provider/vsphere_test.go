// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/vsphere"
)

// noCapacity is vCenter's message without resources (InsufficientFailoverResourcesFault).
const noCapacity = "Insufficient resources to satisfy configured failover level for vSphere HA."

// vsphereGroup is the API group of the provider.
var vsphereGroup = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"}

// onVSphere is a stack with Cluster API Provider vSphere and the sample for it.
type onVSphere struct {
	*stack.Stack
	vcenter *vsphere.VCenter
}

// The sample for vSphere, unchanged, with Cluster API Provider vSphere, its webhooks, the kubeadm bootstrap provider, and govmomi's
// simulated vCenter. Later steps add prices, spec.spread, devices, a remediation, a rollout and an inventory to the sample.
func TestVSphere(t *testing.T) {
	ctx := contextOf(t)
	run := newVSphere(ctx, t)
	for _, step := range []struct {
		name string
		run  func(context.Context, *WithT)
	}{
		{"all offerings of the sample are accepted", run.becomeReady},
		{"prices follow from hardware and adjustments", run.price},
		{"Pods get virtual machines of their instance types", run.launch},
		{"instance types take turns with spec.spread", run.takeTurns},
		{"a Pod with a ResourceClaim gets a virtual machine with devices", run.allocate},
		{"a virtual machine vanishes, and vSphere has no remediation", run.cannotRestart},
		{"vCenter has no resources", run.refuse},
		{"vCenter is unreachable, and the operator is killed", run.disconnect},
		{"a rollout stops if vCenter lacks the template, and undo goes back", run.stopRollout},
		{"another base template replaces all Nodes, one first", run.rollOut},
		{"offerings close without addresses, and open again", run.runOut},
		{"nothing is left", run.remove},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(ctx, NewWithT(t)) }) {
			return
		}
	}
}

func newVSphere(ctx context.Context, t *testing.T) *onVSphere {
	t.Helper()
	g := NewWithT(t)
	vcenter, err := vsphere.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vcenter.Stop)
	credentials := filepath.Join(t.TempDir(), "credentials.yaml")
	if err := os.WriteFile(credentials, fmt.Appendf(nil, "username: %s\npassword: %s\n", vsphere.User, vsphere.Password), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStack(ctx, t, stack.Options{Kubeadm: true, Provider: &stack.Provider{
		Dir: "cluster-api-provider-vsphere", Contract: "v1beta1",
		// The provider deletes nothing for a minute after a task has failed, and retries less and less often until then, at last after
		// 16 minutes. It also tries when its caches are read again, by default after 10 minutes.
		Arguments: []string{"--credentials-file=" + credentials, "--sync-period=20s"},
		Env:       []string{"HTTPS_PROXY=" + vcenter.ProxyURL()}, Objects: objectsIn(g, "vsphere.yaml"),
	}, OperatorArgs: []string{"--ignore-dra-requests=false"}})
	cluster, authority := &clusterv1.Cluster{}, &corev1.Secret{}
	g.Expect(s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: stack.ClusterName}, cluster)).To(Succeed())
	g.Expect(s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: stack.ClusterName + "-ca"}, authority)).To(Succeed())
	guests := &vsphere.Guests{
		VCenter: vcenter, Workload: s.Workload, Endpoint: cluster.Spec.ControlPlaneEndpoint.String(), Authority: authority.Data[corev1.TLSCertKey],
		Log: funcr.New(func(prefix, args string) { _, _ = fmt.Fprintln(t.Output(), prefix, args) }, funcr.Options{}),
	}
	runUntilEnd(ctx, t, guests.Run)
	addresses := &vsphere.Addresses{Management: s.Management, Pool: poolKey, Log: guests.Log}
	for _, object := range objectsIn(g, "addresses.yaml") { // the first is the kind of the last
		eventually(ctx, g, func(g Gomega) { g.Expect(s.Management.Create(ctx, object)).To(Succeed()) })
	}
	runUntilEnd(ctx, t, addresses.Run)
	createSample(ctx, t, s, "vsphere")
	return &onVSphere{s, vcenter}
}

// runUntilEnd runs something until the test ends.
func runUntilEnd(ctx context.Context, t *testing.T, run func(context.Context)) {
	t.Helper()
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(running)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}

// becomeReady expects the template to be ready, which includes that the provider's webhooks accept what is generated.
func (v *onVSphere) becomeReady(ctx context.Context, g *WithT) {
	eventually(ctx, g, func(g Gomega) {
		template := v.template(ctx, g)
		g.Expect(template.StatusConditions().Root().IsTrue()).To(BeTrue(), "the conditions: %+v", template.Status.Conditions)
		g.Expect(template.Status.Offerings).To(BeEquivalentTo(20), "six types in three zones, and one with GPUs in two")
		g.Expect(template.Status.InvalidOfferings).To(BeEmpty())
	})
}

// expectReady waits until the operator has considered the present template and it is ready, and returns it.
func (v *onVSphere) expectReady(ctx context.Context, g *WithT) *v1alpha1.KarpenterMachineTemplate {
	var template *v1alpha1.KarpenterMachineTemplate
	eventually(ctx, g, func(g Gomega) {
		template = v.template(ctx, g)
		ready := template.StatusConditions().Root()
		g.Expect(ready.ObservedGeneration).To(Equal(template.Generation))
		g.Expect(ready.IsTrue()).To(BeTrue(), "the conditions: %+v", template.Status.Conditions)
	})
	return template
}

func (v *onVSphere) launch(ctx context.Context, g *WithT) {
	for _, object := range objectsIn(g, "pods.yaml") {
		g.Expect(v.Workload.Create(ctx, object)).To(Succeed())
	}
	v.expectRunning(ctx, g, 3)
	machines := v.machines(ctx, g)
	zones := lo.Map(machines, func(m vsphere.Machine, _ int) string { return m.Zone })
	g.Expect(zones).To(ConsistOf(vsphere.Zones), "the zones of the virtual machines")
	v.expectPrices(ctx, g)
}

// lose expects a virtual machine that vanishes to be replaced.
func (v *onVSphere) lose(ctx context.Context, g *WithT) {
	lost := v.machines(ctx, g)[0]
	g.Expect(v.vcenter.Destroy(ctx, lost)).To(Succeed())
	eventually(ctx, g, func(g Gomega) {
		g.Expect(lo.Map(v.claims(ctx, g), func(c karpv1.NodeClaim, _ int) string { return c.Status.ProviderID })).NotTo(ContainElement(lost.ProviderID()))
	})
	v.expectRunning(ctx, g, 3)
}

// refuse expects an offering whose clone fails to be marked with vCenter's message, and the next one to be used.
func (v *onVSphere) refuse(ctx context.Context, g *WithT) {
	v.vcenter.Refuse(noCapacity)
	v.scale(ctx, g, 4)
	eventually(ctx, g, func(g Gomega) {
		g.Expect(v.template(ctx, g).Status.UnavailableOfferings).To(ContainElement(And(
			HaveField("Reason", "InsufficientCapacity"), HaveField("Message", ContainSubstring(noCapacity)),
		)))
	})
	v.vcenter.Refuse("")
	v.expectRunning(ctx, g, 4)
}

// disconnect expects Pods to run as soon as the provider reaches vCenter again, with one virtual machine for each.
func (v *onVSphere) disconnect(ctx context.Context, g *WithT) {
	g.Expect(v.vcenter.Disconnect(ctx)).To(Succeed())
	v.scale(ctx, g, 6)
	eventually(ctx, g, func(g Gomega) {
		waiting := lo.Filter(v.listVSphere(ctx, g, "VSphereVM"), func(vm unstructured.Unstructured, _ int) bool {
			conditions, _, _ := unstructured.NestedSlice(vm.Object, "status", "conditions")
			return strings.Contains(fmt.Sprint(conditions), "VCenterUnreachable") || len(conditions) == 0
		})
		g.Expect(len(waiting)).To(BeNumerically(">=", 2), "the virtual machines that the provider cannot create")
	})
	g.Expect(v.KillComponent(ctx, stack.Operator)).To(Succeed())
	v.vcenter.Connect()
	g.Expect(v.StartComponent(ctx, stack.Operator)).To(Succeed())
	v.expectRunning(ctx, g, 6)
}

// remove expects nothing to be left, neither in vCenter nor of what the operator generated.
func (v *onVSphere) remove(ctx context.Context, g *WithT) {
	v.editDisruption(ctx, g, func(disruption *karpv1.Disruption) {
		disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("0s")
	})
	g.Expect(v.Workload.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})).To(Succeed())
	eventually(ctx, g, func(g Gomega) {
		g.Expect(v.machines(ctx, g)).To(BeEmpty(), "virtual machines")
		g.Expect(v.claims(ctx, g)).To(BeEmpty(), "NodeClaims")
		g.Expect(v.listVSphere(ctx, g, "VSphereVM")).To(BeEmpty())
		g.Expect(v.addresses(ctx, g)).To(BeEmpty(), "IPAddresses")
	})
	for _, object := range []client.Object{
		&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}, &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}},
		&v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}},
	} {
		g.Expect(v.Workload.Delete(ctx, object)).To(Succeed())
	}
	eventually(ctx, g, func(g Gomega) {
		deployments := &clusterv1.MachineDeploymentList{}
		g.Expect(v.Management.List(ctx, deployments)).To(Succeed())
		g.Expect(deployments.Items).To(BeEmpty(), "MachineDeployments")
		names := lo.Map(v.listVSphere(ctx, g, "VSphereMachineTemplate"), func(u unstructured.Unstructured, _ int) string { return u.GetName() })
		g.Expect(names).To(ConsistOf("workers", missingBase, pooledBase), "VSphereMachineTemplates")
	})
}

// expectRunning expects a number of Pods, each on a Node whose claim, Machine and virtual machine belong together, and nothing else.
func (v *onVSphere) expectRunning(ctx context.Context, g *WithT, count int) {
	eventually(ctx, g, func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(v.Workload.List(ctx, pods, client.MatchingLabels{"app": "web"})).To(Succeed())
		running := lo.Filter(pods.Items, func(p corev1.Pod, _ int) bool {
			return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp.IsZero()
		})
		g.Expect(running).To(HaveLen(count), "Pods that run, of %d", len(pods.Items))
		machines := lo.KeyBy(v.machines(ctx, g), vsphere.Machine.ProviderID)
		g.Expect(machines).To(HaveLen(count), "virtual machines")
		list := &clusterv1.MachineList{}
		g.Expect(v.Management.List(ctx, list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(count), "Machines")
		claims := v.claims(ctx, g)
		g.Expect(claims).To(HaveLen(count), "NodeClaims")
		for i := range claims {
			v.expectClaim(ctx, g, &claims[i], machines)
		}
	})
}

// expectClaim expects a claim to be what its virtual machine is.
func (v *onVSphere) expectClaim(ctx context.Context, g Gomega, claim *karpv1.NodeClaim, machines map[string]vsphere.Machine) {
	g.Expect(claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized)).To(BeTrue(), "NodeClaim %s is initialized", claim.Name)
	machine, found := machines[claim.Status.ProviderID]
	g.Expect(found).To(BeTrue(), "NodeClaim %s has the provider ID %s of a virtual machine", claim.Name, claim.Status.ProviderID)
	node := &corev1.Node{}
	g.Expect(v.Workload.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node)).To(Succeed())
	g.Expect(node.Spec.ProviderID).To(Equal(claim.Status.ProviderID))
	g.Expect(node.Spec.Taints).To(BeEmpty(), "Node %s", node.Name)
	var cpus, memory int32
	_, err := fmt.Sscanf(claim.Labels[corev1.LabelInstanceTypeStable], "vsphere-vm.cpu-%d.mem-%dgb.os-ubuntu", &cpus, &memory)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(machine.CPUs).To(Equal(cpus), "the CPUs of %s", machine.Name)
	g.Expect(machine.MemoryMiB).To(Equal(memory<<10), "the memory of %s", machine.Name)
	g.Expect(machine.Zone).To(Equal(claim.Labels[corev1.LabelTopologyZone]), "the zone of %s", machine.Name)
	g.Expect(node.Status.Allocatable.Pods().Value()).To(BeEquivalentTo(110), "spec.kubelet.maxPods of the sample")
	for name, planned := range claim.Status.Allocatable {
		has := node.Status.Allocatable[name]
		g.Expect(has.Cmp(planned)).To(BeNumerically(">=", 0), "allocatable %s: planned %s, and Node %s has %s", name, planned.String(), node.Name, has.String())
	}
}

func (v *onVSphere) machines(ctx context.Context, g Gomega) []vsphere.Machine {
	machines, err := v.vcenter.Machines(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	return machines
}

func (v *onVSphere) claims(ctx context.Context, g Gomega) []karpv1.NodeClaim {
	claims := &karpv1.NodeClaimList{}
	g.Expect(v.Workload.List(ctx, claims)).To(Succeed())
	return claims.Items
}

func (v *onVSphere) template(ctx context.Context, g Gomega) *v1alpha1.KarpenterMachineTemplate {
	template := &v1alpha1.KarpenterMachineTemplate{}
	g.Expect(v.Workload.Get(ctx, client.ObjectKey{Name: "general"}, template)).To(Succeed())
	return template
}

// listVSphere lists the provider's objects of a kind.
func (v *onVSphere) listVSphere(ctx context.Context, g Gomega, kind string) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(vsphereGroup.WithKind(kind + "List"))
	g.Expect(v.Management.List(ctx, list)).To(Succeed())
	return list.Items
}

func (v *onVSphere) scale(ctx context.Context, g *WithT, replicas int32) {
	deployment := v.deployment(ctx, g)
	deployment.Spec.Replicas = &replicas
	g.Expect(v.Workload.Update(ctx, deployment)).To(Succeed())
}

func (v *onVSphere) deployment(ctx context.Context, g Gomega) *appsv1.Deployment {
	deployment := &appsv1.Deployment{}
	g.Expect(v.Workload.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, deployment)).To(Succeed())
	return deployment
}
