// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/aws"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stacktest"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// awsGroup is the API group of the provider.
var awsGroup = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2"}

// onAWS is a stack with Cluster API Provider AWS and one of the samples for it.
type onAWS struct {
	onCloud
	cloud *aws.Cloud
}

// The sample for AWS, unchanged, with Cluster API Provider AWS, its webhooks, the kubeadm bootstrap provider, and a simulated AWS.
func TestAWS(t *testing.T) {
	ctx := stacktest.Context(t)
	run := newAWS(ctx, t, "aws")
	runSteps(ctx, t, []step{
		{"all offerings of the sample are accepted", run.becomeReady(48)},
		{"Pods get instances of their instance types", run.launch},
		{"spot pools have no capacity", run.refuse},
		{"AWS denies launches", run.deny},
		{"an instance is terminated", run.lose},
		{"nothing is left", run.remove},
	})
}

func newAWS(ctx context.Context, t *testing.T, sample string) *onAWS {
	t.Helper()
	g := NewWithT(t)
	instanceTypes, err := os.ReadFile(filepath.Join(charts.Root(), "internal", "cli", "importer", "testdata", "aws", "instance-types.json"))
	g.Expect(err).NotTo(HaveOccurred())
	cloud, err := aws.Start(instanceTypes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Stop)
	t.Cleanup(func() { g.Expect(cloud.Unknown()).To(BeEmpty(), "requests that the simulated AWS does not know") })
	s := stacktest.Up(ctx, t, stack.Options{Kubeadm: true, Provider: &stack.Provider{
		Dir: "cluster-api-provider-aws", Contract: "v1beta1", Versions: "v1beta1_v1beta2", Limited: true,
		// The provider looks at instances when its caches are read again, by default after 10 minutes, and at Auto Scaling groups every
		// three minutes.
		Arguments: []string{"--feature-gates=EKS=false,MachinePoolMachines=true", "--sync-period=20s"},
		Env:       cloud.Env(), Objects: objectsIn(g, "aws.yaml"),
	}}, nothingDenied)
	runGuests(ctx, t, s, cloud.Guests)
	createSample(ctx, t, s, sample)
	return &onAWS{onCloud{s, awsGroup}, cloud}
}

func (a *onAWS) launch(ctx context.Context, g *WithT) {
	a.createPods(ctx, g)
	a.expectRunning(ctx, g, 3)
	zones := lo.Map(a.cloud.Instances(), func(i aws.Instance, _ int) string { return i.Zone })
	g.Expect(zones).To(ConsistOf(aws.Zones), "the zones of the instances")
}

// cheapest are the spot pools of which the sample takes turns for Pods that need four CPUs.
func cheapest() []aws.Pool {
	return lo.FlatMap(aws.Zones, func(zone string, _ int) []aws.Pool {
		return []aws.Pool{{InstanceType: "m7g.xlarge", Zone: zone, Spot: true}, {InstanceType: "m6i.xlarge", Zone: zone, Spot: true}}
	})
}

// refuse expects an offering without capacity to be marked with AWS's message, and another one to be used.
func (a *onAWS) refuse(ctx context.Context, g *WithT) {
	before := a.cloud.Instances()
	a.cloud.Exhaust(cheapest()...)
	a.scale(ctx, g, 4)
	eventually(ctx, g, func(g Gomega) {
		g.Expect(a.template(ctx, g).Status.UnavailableOfferings).To(ContainElement(And(
			HaveField("Reason", "InsufficientCapacity"), HaveField("Message", ContainSubstring(aws.NoCapacity(aws.Pool{Spot: true}))),
		)))
	})
	a.expectRunning(ctx, g, 4)
	started, _ := lo.Difference(a.cloud.Instances(), before)
	g.Expect(started).To(HaveLen(1))
	g.Expect(cheapest()).NotTo(ContainElement(started[0].Pool))
	a.cloud.Exhaust()
}

// denial is AWS's message if the provider lacks a right.
const denial = "You are not authorized to perform this operation. User: provider is not authorized to perform: ec2:RunInstances"

// deny expects an offering to be marked after launchTimeoutSeconds, with AWS's message, if the provider retries what AWS denies.
func (a *onAWS) deny(ctx context.Context, g *WithT) {
	before := len(a.cloud.Instances())
	a.cloud.Deny(denial)
	a.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) { spec.LaunchTimeoutSeconds = lo.ToPtr[int32](30) })
	a.scale(ctx, g, int32(before+1))
	eventually(ctx, g, func(g Gomega) {
		g.Expect(a.template(ctx, g).Status.UnavailableOfferings).To(ContainElement(And(
			HaveField("Reason", "LaunchTimeout"), HaveField("Message", ContainSubstring("not authorized to perform: ec2:RunInstances")),
		)))
	})
	a.cloud.Deny("")
	a.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) { spec.LaunchTimeoutSeconds = nil })
	a.expectRunning(ctx, g, before+1)
}

// lose expects an instance that was terminated to be replaced.
func (a *onAWS) lose(ctx context.Context, g *WithT) {
	instances := a.cloud.Instances()
	lost := instances[0]
	a.cloud.Terminate(lost.ID)
	a.expectGone(ctx, g, lost.ProviderID())
	a.expectRunning(ctx, g, len(instances))
}

// remove expects nothing to be left of the Nodes, and then of the template.
func (a *onAWS) remove(ctx context.Context, g *WithT) {
	a.deletePods(ctx, g)
	eventually(ctx, g, func(g Gomega) { g.Expect(a.claims(ctx, g)).To(BeEmpty(), "NodeClaims") })
	eventually(ctx, g, func(g Gomega) { g.Expect(a.cloud.Instances()).To(BeEmpty()) })
	a.deleteSample(ctx, g)
	a.expectNothing(ctx, g)
}

// expectNothing expects nothing to be left, neither in AWS nor of what the operator generated.
func (a *onAWS) expectNothing(ctx context.Context, g *WithT) {
	eventually(ctx, g, func(g Gomega) {
		g.Expect(a.cloud.Instances()).To(BeEmpty())
		g.Expect(a.cloud.Secrets()).To(BeZero(), "secrets of Secrets Manager")
		g.Expect(a.list(ctx, g, "AWSMachine")).To(BeEmpty())
		bases := append(a.list(ctx, g, "AWSMachineTemplate"), a.list(ctx, g, "AWSMachinePool")...)
		g.Expect(lo.Map(bases, func(u unstructured.Unstructured, _ int) string { return u.GetName() })).To(ConsistOf("workers"))
	})
}

// expectRunning expects a number of Pods, each on a Node whose claim, Machine and instance belong together, and nothing else.
func (a *onAWS) expectRunning(ctx context.Context, g *WithT, count int) {
	expectRunning(ctx, g, &a.onCloud, count, func(Gomega) []aws.Instance { return a.cloud.Instances() }, expectInstance)
}

// expectInstance expects an instance to be what its claim says.
func expectInstance(g Gomega, claim *karpv1.NodeClaim, _ *corev1.Node, instance aws.Instance) {
	g.Expect(instance.Pool).To(Equal(aws.Pool{
		InstanceType: claim.Labels[corev1.LabelInstanceTypeStable], Zone: claim.Labels[corev1.LabelTopologyZone],
		Spot: claim.Labels[karpv1.CapacityTypeLabelKey] == karpv1.CapacityTypeSpot,
	}), "instance %s", instance.ID)
	g.Expect(instance.DiskGiB).To(BeEquivalentTo(80), "the rootVolume of the sample")
}
