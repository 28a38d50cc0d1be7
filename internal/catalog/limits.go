// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/inventory"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// Limits are how many NodeClaims a template and its offerings can have. The zero value
// has no limit.
type Limits struct {
	// owner is the name of the template.
	owner     string
	template  *int32
	offerings map[Key]limit
	// shared reports whether claims of other templates can count, which are in others by name.
	shared bool
	others map[string]*v1alpha1.KarpenterMachineTemplate
	inventories
}

// limit is the limit of one offering: either max or reservation is set.
type limit struct {
	max         *int32
	limiter     *Limiter
	reservation *v1alpha1.Reservation
}

// LimitsOf returns the limits of a template with the given types. If reservations with
// one id have several counts, the smallest one applies.
func LimitsOf(template *v1alpha1.KarpenterMachineTemplate, types []Type) Limits {
	limits := Limits{owner: template.Name, template: template.Spec.MaxMachines, offerings: map[Key]limit{}, inventories: inventoriesOf(template, types)}
	limits.shared = len(limits.pools) > 0
	counts := map[string]int32{}
	for i := range types {
		for j := range types[i].Offerings {
			o := &types[i].Offerings[j]
			if o.MaxMachines == nil && o.Reservation == nil {
				continue
			}
			limits.offerings[types[i].KeyOf(o)] = limit{o.MaxMachines, o.Limiter, o.Reservation}
			limits.shared = limits.shared || o.Limiter != nil || o.Reservation != nil
			if r := o.Reservation; r != nil {
				if known, ok := counts[r.ID]; !ok || r.Count < known {
					counts[r.ID] = r.Count
				}
			}
		}
	}
	for key, l := range limits.offerings {
		if l.reservation != nil {
			l.reservation = &v1alpha1.Reservation{ID: l.reservation.ID, Count: counts[l.reservation.ID]}
			limits.offerings[key] = l
		}
	}
	return limits
}

// None reports whether there is no limit.
func (l Limits) None() bool {
	return l.template == nil && len(l.offerings) == 0 && len(l.pools) == 0
}

// isOwn reports whether a claim is of the template with these limits.
func (l Limits) isOwn(claim *karpv1.NodeClaim) bool { return claim.Spec.NodeClassRef.Name == l.owner }

// sharedWith reports whether another template has an offering from the same object, so that its claims
// count toward maxMachines.
func (l Limits) sharedWith(name string, key Key) bool {
	limiter, other := l.offerings[key].limiter, l.others[name]
	return limiter != nil && other != nil && limiter.offersTo(other)
}

// offersTo reports whether a template has the offerings of a limiter.
func (l *Limiter) offersTo(template *v1alpha1.KarpenterMachineTemplate) bool {
	if l.Catalog != "" {
		return template.RefersTo(l.Catalog)
	}
	if template.Spec.Discovery == nil || template.Spec.Discovery.InfrastructureTemplates == nil {
		return false
	}
	discovery := template.Spec.Discovery.InfrastructureTemplates
	selector, err := metav1.LabelSelectorAsSelector(&discovery.Selector)
	return err == nil && discovery.APIGroup == l.APIGroup && discovery.Kind == l.Kind && selector.Matches(labels.Set(l.Labels))
}

// Usage is how much of the limits is used.
type Usage struct {
	limits       Limits
	total        int32
	offerings    map[Key]int32
	reservations map[string]int32
	// shared has the answers of sharedWith, which many claims of a template need.
	shared map[offeringOf]bool
	// ledger has what is left of the inventories.
	ledger *inventory.Ledger
}

// offeringOf is an offering of a template.
type offeringOf struct {
	template string
	Key
}

// Use returns how much claims use. Claims that have no offering yet use nothing.
func (l Limits) Use(claims []karpv1.NodeClaim) Usage {
	usage := Usage{limits: l, offerings: map[Key]int32{}, reservations: map[string]int32{}, shared: map[offeringOf]bool{}, ledger: l.ledger()}
	for i := range claims {
		if Launched(&claims[i]) {
			usage.add(&claims[i])
		}
	}
	return usage
}

func (u *Usage) add(claim *karpv1.NodeClaim) {
	key := KeyOf(claim)
	if u.limits.isOwn(claim) {
		u.total++
	}
	if u.counts(key, claim) {
		u.offerings[key]++
	}
	if id := u.limits.reservationOf(key, claim); id != "" {
		u.reservations[id]++
	}
	u.take(key, claim)
}

// counts reports whether a claim counts toward maxMachines of its offering: every claim of the template,
// and those of templates that share it.
func (u *Usage) counts(key Key, claim *karpv1.NodeClaim) bool {
	if u.limits.isOwn(claim) {
		return true
	}
	other := offeringOf{claim.Spec.NodeClassRef.Name, key}
	shared, known := u.shared[other]
	if !known {
		shared = u.limits.sharedWith(other.template, key)
		u.shared[other] = shared
	}
	return shared
}

// reservationOf returns the id of a claim's reservation. It is that of the Machine, also if its offering no longer exists
// or has another one now.
func (l Limits) reservationOf(key Key, claim *karpv1.NodeClaim) string {
	if id := claim.Labels[v1alpha1.ReservationIDLabel]; id != "" || !l.isOwn(claim) {
		return id
	}
	return lo.FromPtr(l.offerings[key].reservation).ID
}

// Total returns the number of claims of the template.
func (u Usage) Total() int32 { return u.total }

// AllFull reports whether the template is at its limit.
func (u Usage) AllFull() bool { return u.limits.template != nil && u.total >= *u.limits.template }

// Full reports whether an offering or the template is at its limit, or nothing is left of what capacityFrom counts.
func (u Usage) Full(key Key) bool {
	left, counted := u.left(key)
	return u.atLimit(key) || counted && left <= 0
}

// atLimit reports whether an offering or the template is at its limit.
func (u Usage) atLimit(key Key) bool {
	if u.AllFull() {
		return true
	}
	l, limited := u.limits.offerings[key]
	if !limited {
		return false
	}
	used, most := u.of(key, l)
	return used >= most
}

// of returns how many claims count toward the limit of an offering, and how many it allows.
func (u Usage) of(key Key, l limit) (used, most int32) {
	if r := l.reservation; r != nil {
		return u.reservations[r.ID], r.Count
	}
	return u.offerings[key], *l.max
}

// Status returns the limited offerings that are in use, and those whose capacity is counted, for the template's status, sorted
// by instance type, zone and capacity type. If there are too many, it returns those that
// are closest to their limit.
func (u Usage) Status() []v1alpha1.LimitedOffering {
	var used []v1alpha1.LimitedOffering
	for key, l := range u.limits.offerings {
		if nodeClaims, most := u.of(key, l); nodeClaims > 0 {
			used = append(used, v1alpha1.LimitedOffering{InstanceType: key.InstanceType, Zone: key.Zone, CapacityType: key.CapacityType, NodeClaims: nodeClaims, Limit: most})
		}
	}
	used = u.withCounted(used)
	inOrder := func(a, b v1alpha1.LimitedOffering) int {
		return cmp.Or(cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	}
	slices.SortFunc(used, func(a, b v1alpha1.LimitedOffering) int {
		return cmp.Or(cmp.Compare(int64(a.Limit)-int64(a.NodeClaims), int64(b.Limit)-int64(b.NodeClaims)), inOrder(a, b))
	})
	used = used[:min(maxLimitedOfferings, budget.Fit(used, budget.Limited))]
	slices.SortFunc(used, inOrder)
	return used
}

// maxLimitedOfferings is the maximum in the CRD.
const maxLimitedOfferings = 1000

// Exceeding returns the claims that exceed a limit if the oldest claims are served first,
// by creation timestamp and then name. A claim that exceeds one limit does not count for
// the others. The result does not depend on the order of the claims. Of the claims of other
// templates, those that are older count, even if they exceed a limit of their own template: until
// they end, no limit is exceeded.
func Exceeding(claims []karpv1.NodeClaim, limits Limits) sets.Set[types.UID] {
	exceeding := sets.New[types.UID]()
	if limits.None() {
		return exceeding
	}
	usage := limits.Use(nil)
	for _, claim := range oldestFirst(claims) {
		switch {
		case !Launched(claim):
		case limits.isOwn(claim) && (usage.atLimit(KeyOf(claim)) || usage.lacks(claim)):
			exceeding.Insert(claim.UID)
		default:
			usage.add(claim)
		}
	}
	return exceeding
}

// Launched reports whether a claim has an offering: core has persisted it in full or, if
// the claim has only the annotation, in part.
func Launched(claim *karpv1.NodeClaim) bool {
	return claim.Labels[corev1.LabelInstanceTypeStable] != "" &&
		(claim.Annotations[v1alpha1.ScalableResourceAnnotation] != "" || nodeclaims.IsLaunched(claim))
}

// KeyOf returns the offering of a launched claim.
func KeyOf(claim *karpv1.NodeClaim) Key {
	return Key{
		InstanceType: claim.Labels[corev1.LabelInstanceTypeStable],
		Zone:         claim.Labels[corev1.LabelTopologyZone],
		CapacityType: claim.Labels[karpv1.CapacityTypeLabelKey],
	}
}

func oldestFirst(claims []karpv1.NodeClaim) []*karpv1.NodeClaim {
	sorted := lo.Map(claims, func(_ karpv1.NodeClaim, i int) *karpv1.NodeClaim { return &claims[i] })
	slices.SortFunc(sorted, func(a, b *karpv1.NodeClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}
