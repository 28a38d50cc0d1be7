// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// OtherProvider plans the migration from karpenter-provider-cluster-api. Each ClusterAPINodeClass becomes a template of the
// same name, and each of its NodePools another one, whose name ends with a suffix: the kind of a NodeClass cannot be changed.
func OtherProvider(found *Found, ending string) (*Plan, error) {
	if len(found.NodeClasses) == 0 {
		return nil, errors.New("the workload cluster has no " + NodeClassKind)
	}
	plan := &Plan{}
	byTemplate := map[string][]string{}
	owners := map[string]string{}
	var old, pools []string
	for i := range found.NodeClasses {
		class := &found.NodeClasses[i]
		if err := checkName(class.GetName()); err != nil {
			return nil, fmt.Errorf("%s: %w", NodeClassKind, err)
		}
		selector, err := selectorOf(class)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", NodeClassKind, class.GetName(), err)
		}
		selected := lo.Filter(found.Deployments, func(d Deployment, _ int) bool {
			value, member := d.Labels[v1alpha1.OtherMemberLabel]
			return member && value == "" && selector.Matches(labels.Set(d.Labels))
		})
		selected = lo.Filter(selected, func(d Deployment, _ int) bool {
			owner, taken := owners[d.Name]
			if taken {
				plan.Notes = append(plan.Notes, Note{"MachineDeployment " + d.Name, []string{fmt.Sprintf("%s %s selects it, too. It can have one template only, %s.", NodeClassKind, class.GetName(), owner)}})
			}
			owners[d.Name] = class.GetName()
			return !taken
		})
		usable, notes := examine(found, selected)
		plan.Notes = append(plan.Notes, notes...)
		if len(usable) == 0 {
			plan.Notes = append(plan.Notes, Note{NodeClassKind + " " + class.GetName(), []string{"It is left out, because it selects no MachineDeployment of this Cluster that can be adopted."}})
			continue
		}
		byTemplate[class.GetName()] = lo.Map(usable, func(a adopted, _ int) string { return a.Name })
		plan.Objects = append(plan.Objects, template(class.GetName(), usable[0].Deployment))
		for j := range found.NodePools {
			if pool := &found.NodePools[j]; refersTo(pool, class.GetName()) {
				moved := movedPool(pool, pool.Name+ending, class.GetName())
				plan.Objects = append(plan.Objects, moved)
				old, pools = append(old, pool.Name), append(pools, moved.Name)
			}
		}
		plan.Notes = append(plan.Notes, lacking(found, usable, class.GetName())...)
	}
	if len(plan.Objects) == 0 {
		return plan, nil
	}
	all := strings.Join(lo.Flatten(lo.Map(sorted(byTemplate), func(name string, _ int) []string { return byTemplate[name] })), " ")
	member := func(value string) string {
		return fmt.Sprintf("kubectl label machinedeployment --namespace %s %s %s%s", found.Cluster.Namespace, all, v1alpha1.OtherMemberLabel, value)
	}
	plan.Steps = []Step{
		{"Scale the other provider to zero. Its NodeClaims, Machines and Nodes stay, and nothing replaces or removes them.", nil},
		{"In the management cluster, take the MachineDeployments from it. Its Machines keep the label, for the way back:", []string{member("-")}},
		allow(found, byTemplate),
		{"Install the operator in another namespace than the other provider, because both use the same lease. " + definitions, nil},
		{},
		{"See that the templates are Ready, and what they offer:", lo.Map(sorted(byTemplate), func(name string, _ int) string { return "kubectl karpenter-capi offerings " + name })},
		{"The Nodes of the other provider stay, and only that provider removes its finalizer from their NodeClaims. docs/migrate.md describes how to replace them while it runs. No test runs both.", nil},
	}
	if len(pools) == 0 {
		plan.Notes = append(plan.Notes, Note{"NodePool", []string{"No NodePool refers to a " + NodeClassKind + " that can be carried over. Create one for each template."}})
		pools = []string{"NAME"}
	}
	plan.Back = append(release(found, byTemplate, pools),
		Step{"In the management cluster, give the MachineDeployments the label of the other provider again:", []string{member("=")}},
		Step{"Scale the other provider up. Its NodePools (" + strings.Join(old, ", ") + ") and " + NodeClassKind + "es have not changed.", nil})
	return plan, nil
}

// definitions describes what to do about the CustomResourceDefinitions that both providers have.
const definitions = "The CustomResourceDefinition of " + NodeClassKind + " is in the same API group and does not conflict: keep it, because deleting it deletes its objects. " +
	"Of those of Karpenter itself, keep the newer ones."

// selectorOf returns the selector of a ClusterAPINodeClass. It selects all members if there is none.
func selectorOf(class *unstructured.Unstructured) (labels.Selector, error) {
	const field = "spec.scalableResourceSelector"
	content, given, err := unstructured.NestedMap(class.Object, "spec", "scalableResourceSelector")
	if err != nil {
		return nil, fmt.Errorf("%s: expected a label selector: %w", field, err)
	}
	if !given {
		return labels.Everything(), nil
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector); err != nil {
		return nil, fmt.Errorf("%s: expected a label selector: %w", field, err)
	}
	found, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return found, nil
}

func refersTo(pool *karpv1.NodePool, class string) bool {
	ref := pool.Spec.Template.Spec.NodeClassRef
	return ref != nil && ref.Group == v1alpha1.Group && ref.Kind == NodeClassKind && ref.Name == class
}

// movedPool returns a NodePool with another name and NodeClass, and the same settings.
func movedPool(pool *karpv1.NodePool, name, template string) *karpv1.NodePool {
	moved := nodePool(name, template)
	moved.Spec = *pool.Spec.DeepCopy()
	setClass(moved, template)
	return moved
}

// lacking returns notes for MachineDeployments whose Nodes join with taints that no NodePool of the NodeClass has.
func lacking(found *Found, usable []adopted, class string) []Note {
	var notes []Note
	for _, a := range usable {
		for _, taint := range a.taints() {
			has := lo.ContainsBy(found.NodePools, func(pool karpv1.NodePool) bool {
				return refersTo(&pool, class) && lo.ContainsBy(pool.Spec.Template.Spec.Taints, func(t corev1.Taint) bool { return t.ToString() == taint.ToString() })
			})
			if !has {
				notes = append(notes, Note{"MachineDeployment " + a.Name, []string{fmt.Sprintf("Its Nodes join with the taint %s. Add it to spec.template.spec.taints of a NodePool for them, or they get no NodeClaims.", taint.ToString())}})
			}
		}
	}
	return notes
}

func sorted(byName map[string][]string) []string { return slices.Sorted(maps.Keys(byName)) }
