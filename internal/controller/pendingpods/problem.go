// SPDX-License-Identifier: Apache-2.0

package pendingpods

import (
	"fmt"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	provisioning "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// maxMessage is the maximum length of the message of an event.
const maxMessage = 1024

// problem is why a NodePool launches nothing; zero if it launches Nodes.
type problem struct{ pool, reason, message string }

// limiter limits the events of all Pods: if a template is not ready, thousands of Pods can wait for one reason.
var limiter = flowcontrol.NewTokenBucketRateLimiter(5, 10)

// problemOf returns why a NodePool is not ready. The first condition that is False decides: it has the reason, and Ready only
// names the condition.
func problemOf(pool *karpv1.NodePool) problem {
	for _, kind := range []string{karpv1.ConditionTypeNodeClassReady, karpv1.ConditionTypeValidationSucceeded, status.ConditionReady} {
		condition, found := lo.Find(pool.Status.Conditions, func(c status.Condition) bool { return c.Type == kind })
		if found && condition.IsFalse() {
			return problem{pool.Name, condition.Reason, condition.Message}
		}
	}
	return problem{}
}

// problemsOf returns the problems of the NodePools that a Pod could use, if none of them is ready. unknown reports whether
// core has not examined the template of one of them.
func problemsOf(pod *corev1.Pod, pools []karpv1.NodePool) (problems []problem, unknown bool) {
	pools = lo.Filter(pools, func(pool karpv1.NodePool, _ int) bool {
		ref := pool.Spec.Template.Spec.NodeClassRef
		return pool.DeletionTimestamp.IsZero() && !nodepool.IsStatic(&pool) && ref != nil && ref.Group == v1alpha1.Group
	})
	if lo.EveryBy(pools, func(pool karpv1.NodePool) bool { return problemOf(&pool) == problem{} }) {
		return nil, false
	}
	for i := range pools {
		switch found := problemOf(&pools[i]); {
		case !fits(pod, &pools[i]):
		case found == problem{}:
			return nil, false
		case found.reason == v1alpha1.ReasonNodeClassReadinessUnknown:
			unknown = true
		default:
			problems = append(problems, found)
		}
	}
	return problems, unknown
}

// fits reports whether a Pod could run on Nodes of a NodePool, by taints and requirements, as core determines it before it looks at
// instance types.
func fits(pod *corev1.Pod, pool *karpv1.NodePool) bool {
	template := provisioning.NewNodeClaimTemplate(pool)
	return scheduling.Taints(template.Spec.Taints).ToleratesPod(pod) == nil &&
		template.Requirements.Compatible(scheduling.NewStrictPodRequirements(pod), scheduling.AllowUndefinedWellKnownLabels) == nil
}

// notReady reports on a Pod that no NodePool that it could use is ready.
func notReady(pod *corev1.Pod, problems []problem) events.Event {
	messages := lo.Map(problems, func(p problem, _ int) string {
		return fmt.Sprintf("NodePool %s launches no Nodes: %s: %s", p.pool, p.reason, p.message)
	})
	reasons := lo.Map(problems, func(p problem, _ int) string { return p.pool + "=" + p.reason })
	return events.Event{
		InvolvedObject: pod,
		Type:           corev1.EventTypeWarning,
		Reason:         v1alpha1.ReasonNodePoolNotReady,
		Message:        lo.Substring(strings.Join(messages, "; "), 0, maxMessage),
		DedupeValues:   append([]string{string(pod.UID)}, reasons...),
		DedupeTimeout:  repeatAfter,
		RateLimiter:    limiter,
	}
}
