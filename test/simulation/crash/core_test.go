// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/controller"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/node/termination"
	"sigs.k8s.io/karpenter/pkg/controllers/node/termination/terminator"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// sleepless is a clock whose Sleep returns immediately: core sleeps for a second after a write, so
// that its cache catches up, which would take a second for each claim here.
type sleepless struct{ *clocktesting.FakeClock }

func (sleepless) Sleep(time.Duration) {}

// coreControllers are Karpenter core's own controllers that launch, register and
// end claims, and drain and end Nodes.
func (p *process) coreControllers(hook cloudprovider.NodeLifecycleHook) []controller.Controller {
	clk := sleepless{p.simulation.clock}
	return []controller.Controller{
		lifecycle.NewController(clk, p.client, p.cloudProvider, silent{}, state.NewCluster(clk, p.client, p.cloudProvider), nodepoolhealth.NewState(), []cloudprovider.NodeLifecycleHook{hook}),
		termination.NewController(clk, p.client, p.cloudProvider,
			terminator.NewTerminator(clk, p.client, terminator.NewQueue(clk, p.client, silent{}), silent{}), silent{}),
	}
}

// provision is core's provisioner: it creates a claim for each wanted one that does not exist or is
// being deleted. It sees the actual state: wrong counts because of core's own cache are not
// searched for here.
func (p *process) provision() {
	alive := 0
	for _, claim := range p.simulation.claims() {
		if claim.DeletionTimestamp.IsZero() {
			alive++
		}
	}
	for ; alive < p.simulation.wanted; alive++ {
		if !p.offers() {
			return
		}
		claim := newClaim(p.simulation.made("NodeClaim") + 1)
		if err := p.client.Create(p.ctx, claim); err != nil {
			p.simulation.tracef("provisioner: %s", err)
			return
		}
	}
}

// offers reports whether anything can be launched. A NodePool is used only if its template is Ready.
func (p *process) offers() bool {
	pool := &karpv1.NodePool{}
	if err := p.client.Get(p.ctx, types.NamespacedName{Name: poolName}, pool); err != nil {
		return false
	}
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := p.client.Get(p.ctx, types.NamespacedName{Name: templateName}, template); err != nil || !template.StatusConditions().Root().IsTrue() {
		return false
	}
	instanceTypes, err := p.cloudProvider.GetInstanceTypes(p.ctx, pool)
	if err != nil {
		return false
	}
	for _, instanceType := range instanceTypes {
		if len(instanceType.Offerings.Available()) > 0 {
			return true
		}
	}
	return false
}

// newClaim returns a claim as core's provisioner creates it.
func newClaim(number int) *karpv1.NodeClaim {
	in := func(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%02d", number), Labels: map[string]string{
			karpv1.NodePoolLabelKey: poolName,
			karpv1.NodeClassLabelKey(schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.Kind}): templateName,
		}},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: nodeClassRef(),
			Requirements: []karpv1.NodeSelectorRequirementWithMinValues{
				in(corev1.LabelInstanceTypeStable, instanceType),
				in(corev1.LabelTopologyZone, zones...),
				in(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeOnDemand),
			},
			Resources:   karpv1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			ExpireAfter: karpv1.MustParseNillableDuration("Never"),
		},
	}
}
