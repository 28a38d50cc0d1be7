// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/awslabs/operatorpkg/object"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// registrationTimeout is the time after which Karpenter gives up on a claim whose Node has not
// joined (karpenter: pkg/controllers/nodeclaim/lifecycle/liveness.go).
const registrationTimeout = 15 * time.Minute

// shiftedClock is the clock of the operator: the real time, or later.
type shiftedClock struct {
	clock.RealClock
	ahead atomic.Int64
	// caughtUp waits until the operator's cache has the current versions of all claims, at most for
	// the given duration.
	caughtUp func(time.Duration)
}

// Now implements clock.PassiveClock.
func (c *shiftedClock) Now() time.Time {
	return c.RealClock.Now().Add(time.Duration(c.ahead.Load()))
}

// Since implements clock.PassiveClock.
func (c *shiftedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Sleep implements clock.Clock. Karpenter core sleeps for a second after its writes of claims,
// because its cache can lack them (pkg/controllers/nodeclaim/lifecycle,
// pkg/controllers/nodeclaim/expiration). The cache usually has them after some milliseconds.
func (c *shiftedClock) Sleep(duration time.Duration) { c.caughtUp(duration) }

// claimsCaughtUp waits until the operator's cache has all claims that exist, or later versions of
// them, at most for the given duration.
func (e *environment) claimsCaughtUp(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(object.GVK(&karpv1.NodeClaimList{}))
	if err := e.client.List(ctx, live); err != nil {
		<-ctx.Done()
		return
	}
	// The only error is that of the context: the time is over.
	_ = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return lo.EveryBy(live.Items, func(claim metav1.PartialObjectMetadata) bool {
			cached := &karpv1.NodeClaim{}
			if err := e.operator.GetClient().Get(ctx, client.ObjectKeyFromObject(&claim), cached); err != nil {
				// It no longer exists, or the cache lacks it.
				return apierrors.IsNotFound(e.client.Get(ctx, client.ObjectKeyFromObject(&claim), cached))
			}
			order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, claim.ResourceVersion)
			return err == nil && order >= 0
		}), nil
	})
}

// later shifts the operator's clock until a condition is true for a claim. Then it sets the clock
// back, because new objects would look old.
func (e *environment) later(ctx context.Context, duration time.Duration, claim *karpv1.NodeClaim, until func(g Gomega)) {
	GinkgoHelper()
	e.clock.ahead.Store(int64(duration))
	defer e.clock.ahead.Store(0)
	Eventually(ctx, func(g Gomega) {
		g.Expect(e.touch(ctx, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}})).To(Succeed())
		until(g)
	}).WithPolling(time.Second).Should(Succeed())
}

// touch makes an event of an object, so that the operator looks at it at the time that its clock
// shows. The object may no longer exist.
func (e *environment) touch(ctx context.Context, object client.Object) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"integration.test/touched":%q}}}`, time.Now()))
	return client.IgnoreNotFound(e.client.Patch(ctx, object, patch))
}
