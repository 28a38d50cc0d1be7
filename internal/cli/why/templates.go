// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/offers"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// ofTemplates are the rules for templates.
var ofTemplates = []Rule{
	{
		Name: "TemplateEnds",
		Seen: "a template is not deleted",
		Do:   "Its condition `Deletable` names the NodeClaims or generated objects that the deletion waits for. The operator must run",
		See:  "docs/guides/uninstall.md#remove-one-template",
		of:   isTemplate,
		find: func(s *subject) (string, error) {
			if s.template.DeletionTimestamp == nil {
				return "", nil
			}
			waits := lo.FromPtr(view.Condition(s.template.Status.Conditions, v1alpha1.ConditionDeletable))
			s.explain(waits.Reason)
			return fmt.Sprintf("%s is being deleted: %s", s.templateName(), orNothing(waits.Message)), nil
		},
	},
	{
		Name: "TemplateNotExamined",
		Seen: "a template has no condition `Ready`, or it is Unknown",
		Do:   "Wait a few seconds. If it stays, read the log of the operator: it does not run, or cannot write the template's status",
		of:   isTemplate,
		find: func(s *subject) (string, error) {
			if ready := view.Condition(s.template.Status.Conditions, v1alpha1.ConditionReady); ready != nil && !ready.IsUnknown() {
				return "", nil
			}
			return "the operator has not examined " + s.templateName() + " in its present form", nil
		},
	},
	{
		Name: "TemplateBlocked",
		Seen: "a template is not Ready",
		Do:   "Correct what the message names. The [reference of conditions](reference/conditions.md) has every reason",
		of:   isTemplate,
		find: func(s *subject) (string, error) {
			ready := view.Condition(s.template.Status.Conditions, v1alpha1.ConditionReady)
			if ready.IsTrue() {
				return "", nil
			}
			s.explain(ready.Reason)
			return fmt.Sprintf("%s is not Ready: %s", s.templateName(), view.OneLine(ready.Message)), nil
		},
	},
	{
		Name: "AllUnavailable",
		Seen: "a template is Ready, and none of its offerings can be chosen",
		Do:   "Remove what the message names, such as a quota, raise a limit, or add instance types or zones. Each offering that failed is tried again at its time",
		See:  "docs/failures.md#what-the-operator-does",
		of:   isTemplate,
		find: func(s *subject) (string, error) {
			all, closed, err := s.offers()
			if err != nil || len(closed) < len(all) || len(all) == 0 {
				return "", err
			}
			return fmt.Sprintf("%s offers nothing now: %s", s.templateName(), list(closed, whyUnavailable)), nil
		},
	},
	{
		Name: "OfferingsInvalid",
		Seen: "a template has the condition `OfferingsValid=False`",
		Do:   "Correct what the message names. The other offerings can be chosen",
		of:   isTemplate,
		find: func(s *subject) (string, error) { return s.warns(v1alpha1.ConditionOfferingsValid), nil },
	},
	{
		Name: "SomeUnavailable",
		Seen: "`kubectl get kmt` shows fewer `Available` than `Offerings`",
		Do:   "Nothing, if the other offerings are enough. Otherwise remove what the message names. Each offering that failed is tried again at its time",
		See:  "docs/failures.md#what-the-operator-does",
		of:   isTemplate,
		find: func(s *subject) (string, error) {
			all, closed, err := s.offers()
			if err != nil || len(closed) == 0 {
				return "", err
			}
			return fmt.Sprintf("%d of %d offerings of %s cannot be chosen now: %s", len(closed), len(all), s.templateName(), list(closed, whyUnavailable)), nil
		},
	},
	{
		Name: "TemplateWarns",
		Seen: "a template is Ready, and another one of its conditions is False",
		Do:   "Read the message. The [reference of conditions](reference/conditions.md) has every reason",
		of:   isTemplate,
		find: func(s *subject) (string, error) {
			return s.warns(v1alpha1.ConditionMachinesProgressing, v1alpha1.ConditionNodesTainted, v1alpha1.ConditionCapacityAccurate, v1alpha1.ConditionNodesCurrent), nil
		},
	},
	{
		Name: "TemplateUnused",
		Seen: "a template is Ready, and nothing is launched with it",
		Do:   "Create a NodePool whose `nodeClassRef` names the template",
		See:  "docs/guides/first-template.md",
		of:   isTemplate,
		find: func(s *subject) (string, error) {
			return lo.Ternary(len(s.poolsOfTemplate()) == 0, "no NodePool uses "+s.templateName(), ""), nil
		},
	},
}

func isTemplate(s *subject) bool { return s.kind == "template" }

func (s *subject) templateName() string { return v1alpha1.Kind + " " + s.template.Name }

// warns returns the first of some conditions of the template that is False; empty if none is.
func (s *subject) warns(types ...string) string {
	for _, kind := range types {
		if c := view.Condition(s.template.Status.Conditions, kind); c.IsFalse() {
			s.explain(c.Reason)
			return fmt.Sprintf("%s: %s=%s: %s", s.templateName(), c.Type, c.Reason, view.OneLine(c.Message))
		}
	}
	return ""
}

// offers returns all offerings of the template, and those that Karpenter cannot choose now.
func (s *subject) offers() (all, closed []offers.Offer, err error) {
	all, err = offers.List(s.ctx, s.view, s.template, offers.Demand{})
	return all, lo.Filter(all, func(o offers.Offer, _ int) bool { return o.Unavailable != offers.Reason{} }), err
}

func whyUnavailable(o offers.Offer) string { return o.Unavailable.Message }

// poolsOfTemplate returns the NodePools that use the template.
func (s *subject) poolsOfTemplate() []karpv1.NodePool {
	return lo.Filter(s.view.NodePools, func(pool karpv1.NodePool, _ int) bool {
		return pool.Spec.Template.Spec.NodeClassRef.Name == s.template.Name
	})
}

// notFound is the state of what does not exist.
const notFound = "NotFound"

// aroundTemplate returns what the template depends on, and what uses it: of scalable resources, only those with a problem.
func (s *subject) aroundTemplate() []Step {
	steps := []Step{ofCluster(s.view)}
	for _, ref := range s.template.Spec.CatalogRefs {
		step := Step{Kind: v1alpha1.CatalogKind, Name: ref.Name, State: notFound, Problem: "it does not exist"}
		if catalog, found := lo.Find(s.view.Catalogs, func(c v1alpha1.InstanceTypeCatalog) bool { return c.Name == ref.Name }); found {
			state := view.OfCatalog(&catalog)
			step.State, step.Problem = state.Word, state.Problem
		}
		steps = append(steps, step)
	}
	spec := s.template.Spec.Template.Spec
	for _, ref := range []clusterv1.ContractVersionedObjectReference{lo.FromPtr(spec.InfrastructureRef), spec.Bootstrap.ConfigRef} {
		if !ref.IsDefined() {
			continue
		}
		step := Step{Kind: ref.Kind, Namespace: s.view.Served().Namespace, Name: ref.Name, State: "Exists"}
		if _, err := s.view.Object(s.ctx, ref); apierrors.IsNotFound(err) {
			step.State, step.Problem = notFound, "it does not exist"
		} else if err != nil {
			step.State, step.Problem = "Unknown", view.OneLine(err.Error())
		}
		steps = append(steps, step)
	}
	for _, pool := range s.poolsOfTemplate() {
		state := view.OfNodePool(&pool)
		steps = append(steps, Step{Kind: "NodePool", Name: pool.Name, State: state.Word, Problem: state.Problem})
	}
	for _, resource := range s.view.Resources {
		if state := view.OfResource(resource); resource.GetLabels()[v1alpha1.TemplateLabel] == s.template.Name && state.Problem != "" {
			steps = append(steps, Step{string(resource.Kind().Name()), resource.GetNamespace(), resource.GetName(), state.Word, state.Problem})
		}
	}
	return steps
}

// ofCluster returns the state of the Cluster.
func ofCluster(v *view.View) Step {
	step := Step{Kind: "Cluster", Namespace: v.Served().Namespace, Name: v.Served().Name, State: "Exists"}
	switch {
	case v.Cluster == nil:
		step.State, step.Problem = notFound, "it does not exist"
	case !v.Cluster.DeletionTimestamp.IsZero():
		step.State, step.Problem = "Deleting", "no Machines can be created in it"
	case lo.FromPtr(v.Cluster.Spec.Paused):
		step.State, step.Problem = "Paused", "no Machines can be created in it"
	}
	return step
}
