// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
)

// PoolProvider is how an infrastructure provider treats the replicas of a MachinePool. The zero
// value is the strictest: it always changes the number of its instances to the replicas, and
// honours the annotation cluster.x-k8s.io/delete-machine.
type PoolProvider struct {
	// Lenient is whether it acts only when replicas change: an instance that was deleted is not
	// replaced.
	Lenient bool
	// IgnoresAnnotation is whether it ignores the annotation.
	IgnoresAnnotation bool
	// RemovesAnnotated is whether it removes all annotated instances, whatever the replicas are,
	// and no other while one of these exists, as Azure does.
	RemovesAnnotated bool
}

// Instance is what a provider reads from one instance of a pool.
type Instance struct {
	// UID identifies it, and decides its place in the order of removal.
	UID string
	// Going is whether the instance itself is being deleted. No provider reads whether only its
	// Machine is being deleted, and is still being drained or blocked by a hook.
	Going bool
	// DeleteAnnotation is whether its Machine has the annotation cluster.x-k8s.io/delete-machine.
	DeleteAnnotation bool
}

// MachinePool returns how many instances a provider creates, and which it removes, in that order.
// Acted are the replicas on which it has acted before; -1 if there were none.
//
// Instances that are being deleted do not count. Annotated instances are removed first, and then
// any, because Cluster API does not specify which: here by a hash of the UID, so that neither age
// nor name decides.
func MachinePool(provider PoolProvider, replicas, acted int32, instances []Instance) (create int32, remove []string) {
	if provider.Lenient && replicas == acted {
		return 0, nil
	}
	var live []Instance
	annotated := 0
	for _, instance := range instances {
		if instance.DeleteAnnotation {
			annotated++
		}
		if !instance.Going {
			live = append(live, instance)
		}
	}
	tooMany := len(live) - int(replicas)
	if provider.RemovesAnnotated && annotated > 0 {
		for _, instance := range live {
			if instance.DeleteAnnotation {
				remove = append(remove, instance.UID)
			}
		}
		return int32(max(0, -tooMany)), remove
	}
	if tooMany <= 0 {
		return int32(-tooMany), nil
	}
	slices.SortFunc(live, func(a, b Instance) int {
		return cmp.Or(
			cmp.Compare(provider.place(a), provider.place(b)),
			bytes.Compare(hashOf(a.UID), hashOf(b.UID)),
		)
	})
	for _, instance := range live[:tooMany] {
		remove = append(remove, instance.UID)
	}
	return 0, remove
}

func (p PoolProvider) place(instance Instance) int {
	if instance.DeleteAnnotation && !p.IgnoresAnnotation {
		return 0
	}
	return 1
}

func hashOf(uid string) []byte {
	sum := sha256.Sum256([]byte(uid))
	return sum[:]
}
