// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/offers"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// refusal is why a NodePool launches no Node for a Pod.
type refusal struct {
	pool *karpv1.NodePool
	// rank is how far the Pod gets with the NodePool. The NodePool with which it gets furthest is the one to act on.
	rank    rank
	message string
}

// rank orders refusals. The first is that of a NodePool which is not meant for the Pod.
type rank int

const (
	otherLabels rank = iota
	notTolerated
	noOffering
	tooSmall
	unavailable
	full
	poolLimited
	notReady
	accepted
)

// refusals returns why each NodePool launches no Node for a Pod, the one to act on first.
func refusals(ctx context.Context, v *view.View, pod *corev1.Pod) ([]refusal, error) {
	var all []refusal
	for i := range v.NodePools {
		found, err := refuse(ctx, v, &v.NodePools[i], pod)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	slices.SortStableFunc(all, func(a, b refusal) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(lo.FromPtr(b.pool.Spec.Weight), lo.FromPtr(a.pool.Spec.Weight)))
	})
	return all, nil
}

// refuse returns why a NodePool launches no Node for a Pod. What excludes the Pod for good comes first, because a NodePool that is
// not meant for the Pod is not to blame if it is also not ready.
func refuse(ctx context.Context, v *view.View, pool *karpv1.NodePool, pod *corev1.Pod) (refusal, error) {
	because := func(r rank, format string, args ...any) (refusal, error) {
		return refusal{pool, r, fmt.Sprintf(format, args...)}, nil
	}
	requirements := offers.OfNodePool(pool)
	if err := requirements.Compatible(scheduling.NewStrictPodRequirements(pod), scheduling.AllowUndefinedWellKnownLabels); err != nil {
		return because(otherLabels, "the Pod asks for other Nodes: %s", view.OneLine(err.Error()))
	}
	if err := scheduling.Taints(pool.Spec.Template.Spec.Taints).ToleratesPod(pod); err != nil {
		return because(notTolerated, "the Pod does not tolerate the taints of its Nodes: %s", view.OneLine(err.Error()))
	}
	template := v.Template(pool.Spec.Template.Spec.NodeClassRef.Name)
	if template == nil {
		return because(notReady, "%s %s does not exist", pool.Spec.Template.Spec.NodeClassRef.Kind, pool.Spec.Template.Spec.NodeClassRef.Name)
	}
	daemons, err := v.Daemons(ctx, requirements, slices.Concat(pool.Spec.Template.Spec.Taints, pool.Spec.Template.Spec.StartupTaints))
	if err != nil {
		return refusal{}, err
	}
	all, err := offers.List(ctx, v, template, offers.Demand{NodePool: pool, Pod: pod, Daemons: daemons})
	if err != nil {
		return refusal{}, err
	}
	fitting := lo.Filter(all, func(o offers.Offer, _ int) bool { return o.Unfit == offers.Reason{} })
	problem := view.OfTemplate(template).Problem
	if state := view.OfNodePool(pool); problem == "" && state.Word != "Ready" {
		problem = state.Problem
	}
	switch {
	case problem != "" && (len(fitting) > 0 || len(all) == 0):
		return because(notReady, "%s", problem)
	case len(fitting) == 0:
		r, message := unfit(all)
		return because(r, "%s", message)
	case view.NodePoolLimit(pool) != "":
		return because(poolLimited, "%s", view.NodePoolLimit(pool))
	case !lo.SomeBy(fitting, func(o offers.Offer) bool { return o.Usable() }):
		onlyFull := lo.EveryBy(fitting, func(o offers.Offer) bool { return o.Unavailable.Kind == offers.Full })
		return because(lo.Ternary(onlyFull, full, unavailable), "%s", list(fitting, func(o offers.Offer) string { return o.Unavailable.Message }))
	}
	return because(accepted, "")
}

// unfit returns why none of the offerings can run a Pod. Those that are only too small come closest.
func unfit(all []offers.Offer) (rank, string) {
	small := lo.Filter(all, func(o offers.Offer, _ int) bool { return o.Unfit.Kind == offers.TooSmall })
	if len(small) == 0 {
		return noOffering, "no offering has what the Pod asks for: " + list(all, func(o offers.Offer) string { return o.Unfit.Message })
	}
	largest := lo.MaxBy(small, func(a, b offers.Offer) bool {
		return cmp.Or(a.Memory.Cmp(b.Memory), a.CPU.Cmp(b.CPU)) > 0
	})
	return tooSmall, fmt.Sprintf("the Pod is larger than all instance types that it allows. %s is the largest: %s", largest.InstanceType, largest.Unfit.Message)
}

// most is how many offerings a message names.
const most = 3

// list returns offerings with the reason of each. It names a few, and counts the others.
func list(all []offers.Offer, reason func(offers.Offer) string) string {
	parts := lo.Map(lo.Slice(all, 0, most), func(o offers.Offer, _ int) string { return o.Key().String() + ": " + reason(o) })
	if left := len(all) - most; left > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(parts, "; ")
}
