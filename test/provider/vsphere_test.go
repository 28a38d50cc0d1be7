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

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stacktest"
	"github.com/karpenter-capi/karpenter-capi/test/harness/vsphere"
)

// noCapacity is vCenter's message without resources (InsufficientFailoverResourcesFault).
const noCapacity = "Insufficient resources to satisfy configured failover level for vSphere HA."

// vsphereGroup is the API group of the provider.
var vsphereGroup = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"}

// onVSphere is a stack with Cluster API Provider vSphere and the sample for it.
type onVSphere struct {
	onCloud
	vcenter *vsphere.VCenter
}

// The sample for vSphere, unchanged, with Cluster API Provider vSphere, its webhooks, the kubeadm bootstrap provider, and govmomi's
// simulated vCenter. Later steps add prices, spec.spread, devices, a remediation, a rollout and an inventory to the sample.
func TestVSphere(t *testing.T) {
	ctx := stacktest.Context(t)
	run := newVSphere(ctx, t)
	runSteps(ctx, t, []step{
		{"all offerings of the sample are accepted", run.becomeReady(20)}, // six types in three zones, and one with GPUs in two
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
	})
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
	s := stacktest.Up(ctx, t, stack.Options{Kubeadm: true, Provider: &stack.Provider{
		Dir: "cluster-api-provider-vsphere", Contract: "v1beta1",
		// The provider deletes nothing for a minute after a task has failed, and retries less and less often until then, at last after
		// 16 minutes. It also tries when its caches are read again, by default after 10 minutes.
		Arguments: []string{"--credentials-file=" + credentials, "--sync-period=20s"},
		Env:       []string{"HTTPS_PROXY=" + vcenter.ProxyURL()}, Objects: objectsIn(g, "vsphere.yaml"),
	}, OperatorArgs: []string{"--ignore-dra-requests=false"}}, nothingDenied)
	log := runGuests(ctx, t, s, vcenter.Guests)
	addresses := &vsphere.Addresses{Management: s.Management, Pool: poolKey, Log: log}
	for _, object := range objectsIn(g, "addresses.yaml") { // the first is the kind of the last
		eventually(ctx, g, func(g Gomega) { g.Expect(s.Management.Create(ctx, object)).To(Succeed()) })
	}
	runUntilEnd(ctx, t, addresses.Run)
	createSample(ctx, t, s, "vsphere")
	return &onVSphere{onCloud{s, vsphereGroup}, vcenter}
}

func (v *onVSphere) launch(ctx context.Context, g *WithT) {
	v.createPods(ctx, g)
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
	v.expectGone(ctx, g, lost.ProviderID())
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
		waiting := lo.Filter(v.list(ctx, g, "VSphereVM"), func(vm unstructured.Unstructured, _ int) bool {
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
	v.deletePods(ctx, g)
	eventually(ctx, g, func(g Gomega) {
		g.Expect(v.machines(ctx, g)).To(BeEmpty(), "virtual machines")
		g.Expect(v.claims(ctx, g)).To(BeEmpty(), "NodeClaims")
		g.Expect(v.list(ctx, g, "VSphereVM")).To(BeEmpty())
		g.Expect(v.addresses(ctx, g)).To(BeEmpty(), "IPAddresses")
	})
	v.deleteSample(ctx, g)
	eventually(ctx, g, func(g Gomega) {
		names := lo.Map(v.list(ctx, g, "VSphereMachineTemplate"), func(u unstructured.Unstructured, _ int) string { return u.GetName() })
		g.Expect(names).To(ConsistOf("workers", missingBase, pooledBase), "VSphereMachineTemplates")
	})
}

// expectRunning expects a number of Pods, each on a Node whose claim, Machine and virtual machine belong together, and nothing else.
func (v *onVSphere) expectRunning(ctx context.Context, g *WithT, count int) {
	expectRunning(ctx, g, &v.onCloud, count, func(g Gomega) []vsphere.Machine { return v.machines(ctx, g) }, expectVirtualMachine)
}

// expectVirtualMachine expects a virtual machine to be what its claim says.
func expectVirtualMachine(g Gomega, claim *karpv1.NodeClaim, node *corev1.Node, machine vsphere.Machine) {
	var cpus, memory int32
	_, err := fmt.Sscanf(claim.Labels[corev1.LabelInstanceTypeStable], "vsphere-vm.cpu-%d.mem-%dgb.os-ubuntu", &cpus, &memory)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(machine.CPUs).To(Equal(cpus), "the CPUs of %s", machine.Name)
	g.Expect(machine.MemoryMiB).To(Equal(memory<<10), "the memory of %s", machine.Name)
	g.Expect(machine.Zone).To(Equal(claim.Labels[corev1.LabelTopologyZone]), "the zone of %s", machine.Name)
	g.Expect(node.Status.Allocatable.Pods().Value()).To(BeEquivalentTo(110), "spec.kubelet.maxPods of the sample")
}

func (v *onVSphere) machines(ctx context.Context, g Gomega) []vsphere.Machine {
	machines, err := v.vcenter.Machines(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	return machines
}
