// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// withoutEffect reports whether a request is a merge patch of a NodeClaim that cannot change it: it has only a status,
// and is not one of the status, or the other way round. The resourceVersion is a precondition.
func withoutEffect(r request) bool {
	if r.method != http.MethodPatch || !strings.Contains(r.path, "/apis/karpenter.sh/v1/nodeclaims/") || !strings.HasPrefix(r.body, "{") {
		return false
	}
	var patch struct {
		Metadata map[string]any
		Spec     map[string]any
		Status   map[string]any
	}
	if json.Unmarshal([]byte(r.body), &patch) != nil {
		return false
	}
	if strings.HasSuffix(r.path, "/status") {
		return len(patch.Status) == 0
	}
	delete(patch.Metadata, "resourceVersion")
	return len(patch.Metadata)+len(patch.Spec) == 0
}

// AfterSuite expects that no controller has sent such a patch.
var _ = Describe("A patch of a NodeClaim that the operator does not send", func() {
	It("does not change the object in the API server", func(ctx SpecContext) {
		f := machineDeployments.newFixture("unchanged")
		for _, options := range [][]client.MergeFromOption{nil, {client.MergeFromWithOptimisticLock{}}} {
			// No controller works on a claim whose NodeClass is another provider's.
			claim := f.newClaim()
			claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "another.provider", Kind: "NodeClass", Name: "unchanged"}
			Expect(env.client.Create(ctx, claim)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { env.delete(ctx, claim) })
			patch := client.MergeFromWithOptions(claim, options...)
			effective := clients.Effective(env.client)

			status := claim.DeepCopy()
			status.Status.NodeName = "n"
			changed := status.DeepCopy()
			Expect(effective.Patch(ctx, changed, patch)).To(Succeed())
			Expect(changed).To(Equal(status), "not sent")
			Expect(env.client.Patch(ctx, changed, patch)).To(Succeed())
			Expect(changed.ResourceVersion).To(Equal(claim.ResourceVersion), "sent, without an effect")

			object := claim.DeepCopy()
			object.Labels = map[string]string{"changed": "true"}
			changed = object.DeepCopy()
			Expect(effective.Status().Patch(ctx, changed, patch)).To(Succeed())
			Expect(changed).To(Equal(object), "not sent")
			Expect(env.client.Status().Patch(ctx, changed, patch)).To(Succeed())
			if !equality.Semantic.DeepEqual(changed.ManagedFields, claim.ManagedFields) {
				// Up to v1.34, the API server drops the labels, but notes who sent them.
				changed.ManagedFields, changed.ResourceVersion = claim.ManagedFields, claim.ResourceVersion
			}
			Expect(changed).To(Equal(claim), "sent, without an effect")
		}
	})
})
