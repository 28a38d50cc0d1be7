// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/aws"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stacktest"
)

// The sample for AWS with Auto Scaling groups, unchanged. Each offering in use has a MachinePool and a group.
func TestAWSMachinePool(t *testing.T) {
	ctx := stacktest.Context(t)
	run := newAWS(ctx, t, "aws-machinepool")
	runSteps(ctx, t, []step{
		{"all offerings of the sample are accepted", run.becomeReady(48)},
		{"Pods get instances of their instance types", run.launch},
		{"a NodeClaim is deleted", run.removeOne},
		{"groups get no instance", run.wait},
		{"an instance is terminated", run.loseOne},
		{"nothing is left", run.removeAll},
	})
}

// exhaustedType is the instance type whose spot pools have no capacity left after wait: the cheapest with four CPUs.
const exhaustedType = "m7g.xlarge"

// wait expects another offering to be used after launchTimeoutSeconds if a group gets no instance. The provider does not report why:
// it does not read the activities of groups. The pools stay without capacity: the operator does not lower their replicas before what it
// has requested appears, so the groups would launch instances that no NodeClaim needs.
func (a *onAWS) wait(ctx context.Context, g *WithT) {
	before := a.cloud.Instances()
	exhausted := lo.Map(aws.Zones, func(zone string, _ int) aws.Pool {
		return aws.Pool{InstanceType: exhaustedType, Zone: zone, Spot: true}
	})
	a.cloud.Exhaust(exhausted...)
	a.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) { spec.LaunchTimeoutSeconds = lo.ToPtr[int32](30) })
	a.scale(ctx, g, 4)
	eventually(ctx, g, func(g Gomega) {
		g.Expect(a.template(ctx, g).Status.UnavailableOfferings).To(ContainElement(HaveField("Reason", "LaunchTimeout")))
	})
	a.expectRunning(ctx, g, 4)
	started, _ := lo.Difference(a.cloud.Instances(), before)
	g.Expect(started).To(HaveLen(1))
	g.Expect(exhausted).NotTo(ContainElement(started[0].Pool))
}

// removeOne expects the instance of a NodeClaim that is deleted to end, and the Pod to get another one.
func (a *onAWS) removeOne(ctx context.Context, g *WithT) {
	claims := a.claims(ctx, g)
	removed := claims[0]
	g.Expect(a.Workload.Delete(ctx, &removed)).To(Succeed())
	eventually(ctx, g, func(g Gomega) {
		ids := lo.Map(a.cloud.Instances(), func(i aws.Instance, _ int) string { return i.ProviderID() })
		g.Expect(ids).NotTo(ContainElement(removed.Status.ProviderID))
	})
	a.expectRunning(ctx, g, len(claims))
	left := lo.Map(a.claims(ctx, g), func(c karpv1.NodeClaim, _ int) string { return c.Name })
	g.Expect(lo.Intersect(left, lo.Map(claims[1:], func(c karpv1.NodeClaim, _ int) string { return c.Name }))).To(HaveLen(len(claims)-1), "the other NodeClaims")
}

// loseOne expects the Pod of an instance that was terminated to run again. There can be more instances than NodeClaims afterwards: the
// group replaces an instance before the provider reports that it has ended, and until then the operator requests one more.
func (a *onAWS) loseOne(ctx context.Context, g *WithT) {
	claims := a.claims(ctx, g)
	lost, found := lo.Find(a.cloud.Instances(), func(i aws.Instance) bool { return i.InstanceType != exhaustedType })
	g.Expect(found).To(BeTrue(), "an instance whose group has capacity")
	a.cloud.Terminate(lost.ID)
	a.expectGone(ctx, g, lost.ProviderID())
	eventually(ctx, g, func(g Gomega) { expectServed(ctx, g, &a.onCloud, len(claims), a.cloud.Instances(), expectInstance) })
}

// removeAll expects nothing to be left when the template is deleted.
func (a *onAWS) removeAll(ctx context.Context, g *WithT) {
	a.deletePods(ctx, g)
	eventually(ctx, g, func(g Gomega) { g.Expect(a.claims(ctx, g)).To(BeEmpty(), "NodeClaims") })
	a.deleteSample(ctx, g)
	a.expectNothing(ctx, g)
}
