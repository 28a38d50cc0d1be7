// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// registrationTimeout is after what time Karpenter gives up on a claim whose Node
// has not joined (karpenter: pkg/controllers/nodeclaim/lifecycle/liveness.go).
const registrationTimeout = 15 * time.Minute

// shiftedClock is the operator's: the real time, or later. Nobody sleeps on it.
type shiftedClock struct {
	clock.RealClock
	ahead atomic.Int64
}

// Now implements clock.PassiveClock.
func (c *shiftedClock) Now() time.Time {
	return c.RealClock.Now().Add(time.Duration(c.ahead.Load()))
}

// Since implements clock.PassiveClock.
func (c *shiftedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Sleep implements clock.Clock. Karpenter core sleeps for a second where its cache can be
// behind (pkg/controllers/nodeclaim/lifecycle, pkg/controllers/nodeclaim/expiration). What it
// does with an old cache is done in vain, and here it costs every spec that second.
func (c *shiftedClock) Sleep(time.Duration) {}

// later lets the operator believe that it is later, while until has not come true
// for a claim. What is made meanwhile would look old, so it is now again afterwards.
func (e *environment) later(ctx context.Context, duration time.Duration, claim *karpv1.NodeClaim, until func(g Gomega)) {
	GinkgoHelper()
	e.clock.ahead.Store(int64(duration))
	defer e.clock.ahead.Store(0)
	Eventually(ctx, func(g Gomega) {
		// An event makes the operator look at it; it may be gone by now.
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"integration.test/later":%q}}}`, time.Now()))
		object := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}}
		g.Expect(client.IgnoreNotFound(e.client.Patch(ctx, object, patch))).To(Succeed())
		until(g)
	}).WithPolling(time.Second).Should(Succeed())
}
