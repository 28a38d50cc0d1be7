// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Taint is a taint with which the Nodes of an offering join. Karpenter knows only the taints of
// NodePools, so an offering is for NodePools that have its taints.
type Taint struct {
	corev1.Taint
	// Stays reports whether it is always set again. Then a NodePool cannot have it among its
	// startupTaints, which Karpenter expects to be removed.
	Stays bool
}

// taints returns the taints that the annotation describes. Something may remove them.
func (a annotations) taints() ([]Taint, error) {
	text := a[taintsAnnotation]
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var taints []Taint
	for entry := range strings.SplitSeq(text, ",") {
		pair, effect, _ := strings.Cut(strings.TrimSpace(entry), ":")
		key, value, _ := strings.Cut(pair, "=")
		taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 ||
			!slices.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, taint.Effect) {
			return nil, wrongAnnotation(taintsAnnotation, expectTaints, text)
		}
		taints = append(taints, Taint{Taint: taint})
	}
	return taints, nil
}

// taintsOf returns the taints that Cluster API sets on the Nodes of Machines.
func taintsOf(machine clusterv1.MachineSpec) []Taint {
	return lo.Map(machine.Taints, func(taint clusterv1.MachineTaint, _ int) Taint {
		return Taint{corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}, taint.Propagation == clusterv1.MachineTaintPropagationAlways}
	})
}

// decisive returns the taints that keep Pods away. It leaves out those that only prefer other Nodes, and those
// that Karpenter expects on each new Node.
func decisive(taints []Taint) []Taint {
	var decisive []Taint
	for _, taint := range taints {
		ephemeral := lo.ContainsBy(scheduling.KnownEphemeralTaints, func(known corev1.Taint) bool { return known.MatchTaint(&taint.Taint) })
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !ephemeral {
			decisive = append(decisive, taint)
		}
	}
	return decisive
}

// Demand is what a NodePool or NodeClaim sets for its Nodes, as far as the Catalog depends on it.
type Demand struct {
	// Labels are the keys of labels and requirements.
	Labels                []string
	Taints, StartupTaints []corev1.Taint
}

// DemandOf returns what a NodePool sets.
func DemandOf(nodePool *karpv1.NodePool) Demand {
	template := &nodePool.Spec.Template
	return Demand{Labels: append(keysOf(template.Spec.Requirements), lo.Keys(template.Labels)...), Taints: template.Spec.Taints, StartupTaints: template.Spec.StartupTaints}
}

// DemandOfClaim returns what a NodeClaim sets. Its requirements include its labels.
func DemandOfClaim(claim *karpv1.NodeClaim) Demand {
	return Demand{Labels: keysOf(claim.Spec.Requirements), Taints: claim.Spec.Taints, StartupTaints: claim.Spec.StartupTaints}
}

func keysOf(requirements []karpv1.NodeSelectorRequirementWithMinValues) []string {
	return lo.Map(requirements, func(r karpv1.NodeSelectorRequirementWithMinValues, _ int) string { return r.Key })
}

// lacks returns the taints of an offering that are not among those of a NodePool or NodeClaim.
func (d Demand) lacks(offering *Offering) []Taint {
	return lo.Reject(offering.Taints, func(taint Taint, _ int) bool {
		same := func(other corev1.Taint) bool {
			return other.MatchTaint(&taint.Taint) && other.Value == taint.Value
		}
		return slices.ContainsFunc(d.Taints, same) || !taint.Stays && slices.ContainsFunc(d.StartupTaints, same)
	})
}

// taintedOf returns the offerings with taints.
func taintedOf(types []Type) []Key {
	return lo.FlatMap(types, func(t Type, _ int) []Key {
		return lo.FilterMap(t.Offerings, func(o Offering, _ int) (Key, bool) { return t.KeyOf(&o), len(o.Taints) > 0 })
	})
}

// Untolerated returns a problem for the taints of offerings that no NodePool of the template has. There is no
// problem if there is no NodePool.
func Untolerated(types []Type, pools []karpv1.NodePool) []Problem {
	var problems []Problem
	for i := range types {
		for j := range types[i].Offerings {
			offering := &types[i].Offerings[j]
			if len(offering.Taints) == 0 {
				continue
			}
			closest, fewest := "", []Taint(nil)
			for _, pool := range pools {
				spec := pool.Spec.Template.Spec
				if lacking := (Demand{Taints: spec.Taints, StartupTaints: spec.StartupTaints}).lacks(offering); closest == "" || len(lacking) < len(fewest) {
					closest, fewest = pool.Name, lacking
				}
			}
			for _, taint := range fewest {
				where := lo.Ternary(taint.Stays, "spec.template.spec.taints", "spec.template.spec.taints or startupTaints")
				problems = append(problems, Problem{v1alpha1.ReasonTaintsNotInNodePool, fmt.Sprintf(
					"offering %s: its Nodes join with the taint %s, which no NodePool of the template has, so that Karpenter does not choose it: add the taint to %s of NodePool %s, or of another one for such Nodes",
					types[i].KeyOf(offering), taint.ToString(), where, closest)})
			}
		}
	}
	return problems
}
