// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"errors"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// While the cache of either cluster is not filled, nothing counts as absent.
func TestAnOutageIsNotAbsence(t *testing.T) {
	for _, name := range []string{connection.Workload, connection.Management} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(fixture.Noon)
			clusters := fixture.Clusters()
			to := connection.New(name, "https://api", clock, clock)
			if name == connection.Workload {
				clusters.ToWorkload = to
			} else {
				clusters.ToManagement = to
			}
			provider := New(clusters, catalog.New(clusters), clock)
			claim := &karpv1.NodeClaim{}
			_, created := provider.Create(t.Context(), claim)
			_, got := provider.Get(t.Context(), "aws:///i-1")
			_, listed := provider.List(t.Context())
			_, drifted := provider.IsDrifted(t.Context(), claim)
			for method, err := range map[string]error{"Create": created, "Get": got, "List": listed, "IsDrifted": drifted, "Delete": provider.Delete(t.Context(), claim)} {
				if _, unreachable := errors.AsType[*connection.Error](err); !unreachable || cloudprovider.IsNodeClaimNotFoundError(err) || cloudprovider.IsNodeClassNotReadyError(err) {
					t.Errorf("%s: got %v, want that the cluster cannot be reached", method, err)
				}
			}
			var waits *cloudprovider.CreateError
			if !errors.As(created, &waits) || waits.ConditionReason != v1alpha1.ReasonClusterUnreachable {
				t.Errorf("got %v, want a CreateError with reason %s", created, v1alpha1.ReasonClusterUnreachable)
			}
		})
	}
}
