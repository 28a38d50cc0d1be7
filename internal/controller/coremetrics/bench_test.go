// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	metricsnode "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
)

var claimConditions = []string{
	karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized,
	karpv1.ConditionTypeConsolidatable, karpv1.ConditionTypeConsistentStateFound,
}

// BenchmarkTransition is the cost of one reconcile in which a condition of one of many NodeClaims changes.
func BenchmarkTransition(b *testing.B) {
	forBoth(b, func(b *testing.B, w *world, reconciler reconcile.Reconciler) {
		for i := 0; b.Loop(); i++ {
			claim := w.claim("0")
			if i%2 == 0 {
				claim.StatusConditions().SetFalse(karpv1.ConditionTypeConsolidatable, "Busy", "")
			} else {
				claim.StatusConditions().SetTrue(karpv1.ConditionTypeConsolidatable)
			}
			reconcileClaim(b, reconciler, "0")
		}
	})
}

// BenchmarkDeletion is the cost of the reconciles in which one of many NodeClaims is created and has been deleted.
func BenchmarkDeletion(b *testing.B) {
	forBoth(b, func(b *testing.B, w *world, reconciler reconcile.Reconciler) {
		claim := w.claim("0")
		for b.Loop() {
			delete(w.objects, key{"NodeClaim", "0"})
			reconcileClaim(b, reconciler, "0")
			w.objects[key{"NodeClaim", "0"}] = claim
			reconcileClaim(b, reconciler, "0")
		}
	})
}

func forBoth(b *testing.B, run func(*testing.B, *world, reconcile.Reconciler)) {
	for _, replaced := range []bool{false, true} {
		for _, count := range []int{1000, 5000} {
			b.Run(fmt.Sprintf("replaced=%t/claims=%d", replaced, count), func(b *testing.B) {
				useRegistry(b)
				w := newWorld()
				core := newStatusControllers(w, &record.FakeRecorder{})["NodeClaim"]
				if replaced {
					core = Replace(core, nil)
				}
				reconciler := core.(reconcile.Reconciler)
				for i := range count {
					name := fmt.Sprint(i)
					w.create(&karpv1.NodeClaim{}, name)
					for _, condition := range claimConditions {
						w.claim(name).StatusConditions().SetTrue(condition)
					}
					reconcileClaim(b, reconciler, name)
				}
				run(b, w, reconciler)
			})
		}
	}
}

func reconcileClaim(b *testing.B, reconciler reconcile.Reconciler, name string) {
	b.Helper()
	if _, err := reconciler.Reconcile(b.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkNodes is the cost of metrics.node: of core's every 5 s, of ours for each scrape.
func BenchmarkNodes(b *testing.B) {
	for _, count := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("replaced=false/nodes=%d", count), func(b *testing.B) {
			useRegistry(b)
			core := metricsnode.NewController(newCluster(b, count))
			for b.Loop() {
				if _, err := core.Reconcile(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("replaced=true/nodes=%d", count), func(b *testing.B) {
			useRegistry(b)
			ours := newNodeMetrics(newCluster(b, count))
			for b.Loop() {
				ours.compute()
			}
		})
	}
}
