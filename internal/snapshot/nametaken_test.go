// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A claim whose Machine would be generated from something else than the resource of its name gets no Machine of that, and
// fails even while nothing acts on the resource. Before the resource exists, the oldest claim decides what it is.
func TestNameTaken(t *testing.T) {
	claim := func(name, hash string, age time.Duration) *karpv1.NodeClaim {
		c := fixture.Claim(age)
		c.Name, c.UID = name, types.UID(name)
		c.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}
		if hash != "" {
			c.Annotations[v1alpha1.TemplateHashAnnotation] = hash
		}
		return c
	}
	resource := func(hash string) *clusterv1.MachineDeployment {
		object := deployment(0)
		object.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
		if hash != "" {
			object.Labels[v1alpha1.TemplateHashLabel] = hash
		}
		return object
	}
	const old, young = 2 * time.Minute, time.Minute
	for name, tc := range map[string]struct {
		resource *clusterv1.MachineDeployment // nil if none exists yet
		claims   []*karpv1.NodeClaim
		taken    []string // claims
	}{
		"its own":                   {resource: resource("a"), claims: []*karpv1.NodeClaim{claim("x", "a", old)}},
		"of another":                {resource: resource("a"), claims: []*karpv1.NodeClaim{claim("x", "b", old), claim("y", "a", young)}, taken: []string{"x"}},
		"an adopted one":            {resource: resource(""), claims: []*karpv1.NodeClaim{claim("x", "b", old)}},
		"a claim of an adopted one": {resource: resource("a"), claims: []*karpv1.NodeClaim{claim("x", "", old)}},
		"none yet":                  {claims: []*karpv1.NodeClaim{claim("x", "a", young), claim("y", "a", old)}},
		"none yet, and the older claim has another": {claims: []*karpv1.NodeClaim{claim("x", "a", young), claim("y", "b", old)}, taken: []string{"x"}},
		"none yet, and two claims of one second":    {claims: []*karpv1.NodeClaim{claim("y", "b", old), claim("x", "a", old)}, taken: []string{"y"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}}
			if tc.resource != nil {
				objects = append(objects, tc.resource)
			}
			for _, c := range tc.claims {
				objects = append(objects, c)
			}
			clusters := indexed(objects...)
			snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{})
			if err != nil {
				t.Fatal(err)
			}
			plan := planner.Decide(&snap.State)
			var taken []string
			for _, c := range tc.claims {
				outcome := plan.Outcomes[c.UID]
				failed := outcome.Failure.Kind == planner.NameTaken
				if failed {
					taken = append(taken, c.Name)
				}
				if waits := plan.Waiting.Has(c.UID); waits == failed || (outcome.Stall != planner.Stall{}) == failed {
					t.Errorf("claim %s: fails: %t, waits: %t, stall: %+v", c.Name, failed, waits, outcome.Stall)
				}
			}
			if diff := cmp.Diff(tc.taken, taken); diff != "" {
				t.Errorf("claims that fail (-want +got):\n%s", diff)
			}
			slices.Reverse(snap.Claims)
			if hash := snap.hash(); hash != snap.State.Hash {
				t.Errorf("if the cache has the claims in another order, the hash is %q, and not %q", hash, snap.State.Hash)
			}
			if want := len(tc.claims) - len(tc.taken); int(plan.Replicas) != want {
				t.Errorf("got %d replicas, want %d", plan.Replicas, want)
			}
		})
	}
}
