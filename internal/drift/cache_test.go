// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/drift"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// ready returns a template that was examined.
func ready() *v1alpha1.KarpenterMachineTemplate {
	template := fixture.Template()
	template.UID, template.ResourceVersion, template.Status.AcceptedHash = "1", "1", "x"
	for _, dependent := range template.StatusConditions().List() {
		template.StatusConditions().SetTrue(dependent.Type)
	}
	template.StatusConditions().SetTrue(status.ConditionReady)
	return template
}

// The answers are kept for the same state of the same template, for a short time, and for nothing else. An error is not
// kept.
func TestCache(t *testing.T) {
	clusters := fixture.Clusters()
	failing := true
	clusters.Management = fixture.Cluster{Client: interceptor.NewClient(clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, isCluster := object.(*clusterv1.Cluster); isCluster && failing {
				return errors.New("the cache is not filled")
			}
			return c.Get(ctx, key, object, options...)
		},
	})}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	cache := drift.NewCache(clusters, catalog.New(clusters), clock)
	if _, _, err := cache.Of(t.Context(), ready()); err == nil {
		t.Fatal("an error of a cache is lost")
	}
	failing = false
	of := func(template *v1alpha1.KarpenterMachineTemplate, wantDecided bool) *drift.Template {
		t.Helper()
		answers, decided, err := cache.Of(t.Context(), template)
		if err != nil || decided != wantDecided || decided != (answers != nil) {
			t.Fatalf("got %v, %t and %v, want that it is decided: %t", answers, decided, err, wantDecided)
		}
		return answers
	}
	first := of(ready(), true)
	if of(ready(), true) != first {
		t.Error("the answers are computed again although nothing has changed")
	}
	for _, later := range []time.Duration{5 * time.Second, -time.Hour} {
		clock.SetTime(clock.Now().Add(later))
		if of(ready(), true) == first {
			t.Errorf("the answers are kept when the clock has moved by %s", later)
		}
	}
	first = of(ready(), true)
	changed, recreated := ready(), ready()
	changed.ResourceVersion, recreated.UID = "2", "2"
	if of(changed, true) == first || of(recreated, true) == first {
		t.Error("the answers are those of another state, or of another template")
	}
	notReady := ready()
	notReady.ResourceVersion = "3"
	notReady.StatusConditions().SetFalse(v1alpha1.ConditionClusterReady, "Test", "test")
	ends := ready()
	ends.ResourceVersion, ends.DeletionTimestamp = "4", new(metav1.Now())
	for range 2 {
		of(notReady, false)
		of(ends, false)
	}
}

// Only a registered claim of a template that is not being deleted can be outdated.
func TestCanDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		want   bool
	}{
		"registered":         {func(*karpv1.NodeClaim) {}, true},
		"not registered":     {func(c *karpv1.NodeClaim) { c.StatusConditions().SetUnknown(karpv1.ConditionTypeRegistered) }, false},
		"being deleted":      {func(c *karpv1.NodeClaim) { c.DeletionTimestamp = new(metav1.Now()) }, false},
		"of another kind":    {func(c *karpv1.NodeClaim) { c.Spec.NodeClassRef.Kind = "EC2NodeClass" }, false},
		"of another group":   {func(c *karpv1.NodeClaim) { c.Spec.NodeClassRef.Group = "karpenter.k8s.aws" }, false},
		"without a resource": {func(c *karpv1.NodeClaim) { c.Annotations = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := fixture.Claim(0)
			claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "md"}
			claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
			tc.change(claim)
			if got := drift.CanDrift(claim); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
