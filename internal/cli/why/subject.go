// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// subject is what a question is about, with the objects that belong to it. Each is nil if it does not exist.
type subject struct {
	ctx  context.Context
	view *view.View
	// kind is what was asked about.
	kind string

	pod      *corev1.Pod
	pool     *karpv1.NodePool
	template *v1alpha1.KarpenterMachineTemplate
	claim    *karpv1.NodeClaim
	resource *scalable.Resource
	plan     *view.Plan
	machine  *clusterv1.Machine
	node     *corev1.Node

	// refusals are why each NodePool launches nothing for the Pod; empty unless the Pod waits without a NodeClaim.
	refusals []refusal
	// do and see replace those of the rule that applies, if they depend on what was found.
	do, see string
}

// newSubject reads what belongs to the object of a question.
func newSubject(ctx context.Context, v *view.View, kind, namespace, name string) (*subject, error) {
	s := &subject{ctx: ctx, view: v, kind: kind}
	found := false
	switch kind {
	case "pod":
		pod, err := v.Pod(ctx, namespace, name)
		if err != nil {
			return nil, fmt.Errorf("reading Pod %s/%s: %w", namespace, name, err)
		}
		s.pod, found = pod, true
	case "nodeclaim":
		s.claim = v.Claim(name)
		found = s.claim != nil
	case "machine":
		s.machine = v.Machine(name)
		found = s.machine != nil
	case "node":
		s.node = v.Node(name)
		found = s.node != nil
	case "template":
		s.template = v.Template(name)
		found = s.template != nil
	default:
		return nil, fmt.Errorf("%q: expected one of %s", kind, strings.Join(Kinds, ", "))
	}
	if !found {
		return nil, fmt.Errorf("%s %s: it does not exist, or no %s has it", kind, name, v1alpha1.Kind)
	}
	return s, s.join()
}

// join finds the objects that belong to those that are known.
func (s *subject) join() error {
	if s.pod != nil {
		s.node = s.view.Node(s.pod.Spec.NodeName)
		if s.node == nil {
			s.claim = nominated(s.view, s.view.Events(s.ctx, s.pod))
		}
	}
	s.joinMachine()
	s.joinTemplate()
	if s.waits() && s.claim == nil {
		var err error
		if s.refusals, err = refusals(s.ctx, s.view, s.pod); err != nil {
			return err
		}
		if len(s.refusals) > 0 {
			s.pool = s.refusals[0].pool
			s.template = s.view.Template(s.pool.Spec.Template.Spec.NodeClassRef.Name)
		}
	}
	return s.readPlan()
}

// joinMachine finds those of NodeClaim, Machine and Node that are not known yet.
func (s *subject) joinMachine() {
	if s.node != nil {
		s.claim, s.machine = s.view.ClaimOfNode(s.node), s.view.MachineOfNode(s.node)
	}
	if s.claim == nil && s.machine != nil {
		s.claim = s.view.ClaimOf(s.machine)
	}
	if s.claim != nil && s.machine == nil {
		s.machine = s.view.MachineOf(s.claim)
	}
	if s.node == nil {
		s.node = s.view.NodeOf(s.claim, s.machine)
	}
}

// joinTemplate finds the NodePool, the template and the scalable resource.
func (s *subject) joinTemplate() {
	if s.claim != nil {
		s.pool, s.template = s.view.NodePool(s.claim.Labels[karpv1.NodePoolLabelKey]), s.view.Template(s.claim.Spec.NodeClassRef.Name)
		s.resource = s.view.Resource(s.claim.Annotations[v1alpha1.ScalableResourceAnnotation])
	}
	if s.resource == nil && s.machine != nil {
		s.resource = s.view.Resource(clients.ResourceOf(s.machine))
	}
	if s.template == nil && s.resource != nil {
		s.template = s.view.Template(s.resource.GetLabels()[v1alpha1.TemplateLabel])
	}
}

// readPlan asks what the operator decides about the scalable resource of the NodeClaim.
func (s *subject) readPlan() (err error) {
	s.plan = &view.Plan{}
	if s.claim == nil {
		return nil
	}
	if name := s.claim.Annotations[v1alpha1.ScalableResourceAnnotation]; name != "" {
		s.plan, err = s.view.Plan(s.ctx, name)
	}
	return err
}

// waits reports whether the subject is a Pod without a Node.
func (s *subject) waits() bool { return s.pod != nil && s.pod.Spec.NodeName == "" }

// provider returns an infrastructure or bootstrap object of the Machine; nil if it cannot be read.
func (s *subject) provider(ref clusterv1.ContractVersionedObjectReference) *unstructured.Unstructured {
	if !ref.IsDefined() {
		return nil
	}
	object, err := s.view.Object(s.ctx, ref)
	if err != nil {
		return nil
	}
	return object
}

// nomination is how Karpenter names a NodeClaim in its event of a Pod (karpenter:
// pkg/controllers/provisioning/scheduling/events.go, NominatePodEvent).
var nomination = regexp.MustCompile(`nodeclaim/([^\s,]+)`)

// nominated returns the NodeClaim that Karpenter has chosen for a Pod last; nil if it has chosen none that exists.
func nominated(v *view.View, all []corev1.Event) *karpv1.NodeClaim {
	for i := range all {
		if all[i].Reason != events.Nominated {
			continue
		}
		if match := nomination.FindStringSubmatch(all[i].Message); match != nil {
			return v.Claim(match[1])
		}
	}
	return nil
}

// steps returns the objects in their order.
func (s *subject) steps() []Step {
	var steps []Step
	add := func(kind, namespace, name string, state view.State) {
		steps = append(steps, Step{kind, namespace, name, state.Word, state.Problem})
	}
	if s.pod != nil {
		add("Pod", s.pod.Namespace, s.pod.Name, ofPod(s.pod))
	}
	for _, refusal := range s.refusals {
		state := view.OfNodePool(refusal.pool)
		add("NodePool", "", refusal.pool.Name, view.State{Word: state.Word, Problem: refusal.message})
	}
	if s.pool != nil && len(s.refusals) == 0 {
		add("NodePool", "", s.pool.Name, view.OfNodePool(s.pool))
	}
	if s.template != nil {
		add(v1alpha1.Kind, "", s.template.Name, view.OfTemplate(s.template))
	}
	if isTemplate(s) {
		steps = append(steps, s.aroundTemplate()...)
	}
	if s.claim != nil {
		add("NodeClaim", "", s.claim.Name, view.OfClaim(s.claim))
	}
	if s.resource != nil {
		add(string(s.resource.Kind().Name()), s.resource.GetNamespace(), s.resource.GetName(), view.OfResource(s.resource))
	}
	if s.machine != nil {
		add("Machine", s.machine.Namespace, s.machine.Name, view.OfMachine(s.machine))
		for _, ref := range []clusterv1.ContractVersionedObjectReference{s.machine.Spec.InfrastructureRef, s.machine.Spec.Bootstrap.ConfigRef} {
			if object := s.provider(ref); object != nil {
				add(object.GetKind(), object.GetNamespace(), object.GetName(), view.OfProvider(object))
			}
		}
	}
	if s.node != nil {
		add("Node", "", s.node.Name, view.OfNode(s.node))
	}
	return steps
}

// ofPod returns the state of a Pod.
func ofPod(pod *corev1.Pod) view.State {
	state := view.State{Word: string(pod.Status.Phase)}
	if scheduled, found := condition(pod, corev1.PodScheduled); found && scheduled.Status == corev1.ConditionFalse {
		state.Problem = view.OneLine(scheduled.Message)
	}
	return state
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) (corev1.PodCondition, bool) {
	return lo.Find(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
}
