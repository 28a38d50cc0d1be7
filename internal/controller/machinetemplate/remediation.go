// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/remediation"
)

// setRemediationReady sets whether the machines of unhealthy Nodes can be restarted. A template without remediation does not
// have the condition.
func (r *Reconciler) setRemediationReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions := template.StatusConditions()
	if template.Spec.Remediation == nil {
		return conditions.Clear(v1alpha1.ConditionRemediationReady)
	}
	found, err := r.remediationProblem(ctx, template)
	if unlisted := (reference.Unlisted{}); errors.As(err, &unlisted) {
		found, err = &problem{v1alpha1.ReasonObjectsNotReadable, unlisted.Error()}, nil
	}
	if err != nil {
		return err
	}
	if found != nil {
		conditions.SetFalse(v1alpha1.ConditionRemediationReady, found.reason,
			"spec.remediation.templateRef: "+found.message+". Unhealthy Nodes are replaced instead")
		return nil
	}
	conditions.SetTrue(v1alpha1.ConditionRemediationReady)
	return nil
}

// remediationProblem returns why no remediation request can be created; nil if one can.
func (r *Reconciler) remediationProblem(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (*problem, error) {
	ref := template.Spec.Remediation.TemplateRef
	allowed, err := r.readAllowed(ctx, template)
	if err != nil {
		return nil, err
	}
	if _, found, err := r.find(ctx, ref, allowed.Base); err != nil || found != nil {
		return found, err
	}
	kind := remediation.KindOf(ref)
	if _, err := reference.Kind(ctx, r.clusters.Management.GetClient(), kind); err != nil {
		if unusable := reference.Unusable(""); errors.As(err, &unusable) {
			return &problem{v1alpha1.ReasonReferenceKindUnusable, unusable.Error()}, nil
		}
		return nil, err
	}
	lacking, err := r.lackingRights(ctx, kind)
	if err != nil || len(lacking) == 0 {
		return nil, err
	}
	return &problem{v1alpha1.ReasonRequestsNotAllowed, fmt.Sprintf("the operator has no right to %s %s in namespace %s of the management cluster: grant it, for example with rbac.infrastructureKinds of the chart",
		strings.Join(lacking, ", "), kind, r.clusters.Cluster.Namespace)}, nil
}

// requestVerbs are what the operator does with remediation requests.
var requestVerbs = []string{"get", "create", "delete"}

// lackingRights returns the verbs for which the operator has no right to a kind of remediation requests. It remembers a kind
// to which the operator has all rights. If it loses one later, a restart fails, and the Node is replaced.
func (r *Reconciler) lackingRights(ctx context.Context, kind schema.GroupKind) ([]string, error) {
	if _, permitted := r.permitted.Load(kind); permitted {
		return nil, nil
	}
	var lacking []string
	for _, verb := range requestVerbs {
		may, err := reference.May(ctx, r.clusters.Management.GetClient(), kind, r.clusters.Cluster.Namespace, verb)
		if err != nil {
			return nil, err
		}
		if !may {
			lacking = append(lacking, verb)
		}
	}
	if len(lacking) == 0 {
		r.permitted.Store(kind, struct{}{})
	}
	return lacking, nil
}

// waitsForRights reports whether the condition can change without an event, when the operator gets a right.
func waitsForRights(template *v1alpha1.KarpenterMachineTemplate) bool {
	ready := template.StatusConditions().Get(v1alpha1.ConditionRemediationReady)
	return ready.IsFalse() && (ready.Reason == v1alpha1.ReasonRequestsNotAllowed || ready.Reason == v1alpha1.ReasonObjectsNotReadable)
}
