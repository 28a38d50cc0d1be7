// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// No link is planned from replicas that are older than the lower ones that this process, or the one before it, has set.
func TestLowerReplicasThatTheCacheLacks(t *testing.T) {
	version := func(version string) *clusterv1.MachineDeployment {
		replicas := map[string]int32{"5": 3, "6": 2, "7": 2}[version]
		return &clusterv1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "general", UID: "1", ResourceVersion: version},
			Spec:       clusterv1.MachineDeploymentSpec{Replicas: &replicas},
		}
	}
	other := version("1")
	other.UID = "2"
	for name, tc := range map[string]struct {
		live    *clusterv1.MachineDeployment // in the API server; nil if it does not exist
		read    bool                         // this process has read it before
		lowered *clusterv1.MachineDeployment // by this process; nil if it has lowered nothing
		cached  *clusterv1.MachineDeployment
		seen    bool
	}{
		"the cache has the latest":                        {live: version("5"), cached: version("5"), seen: true},
		"the process before has lowered it":               {live: version("6"), cached: version("5")},
		"another client has written something else":       {live: version("7"), cached: version("6"), seen: true},
		"another client has written it since it was read": {live: version("6"), read: true, cached: version("5"), seen: true},
		"this process has lowered it":                     {live: version("6"), lowered: version("6"), cached: version("5")},
		"the cache has what this process has written":     {live: version("6"), lowered: version("6"), cached: version("6"), seen: true},
		"the cache has more":                              {live: version("7"), lowered: version("6"), cached: version("7"), seen: true},
		"it was created again":                            {live: other, lowered: version("6"), cached: other, seen: true},
		"it no longer exists, and the cache has it":       {cached: version("5"), seen: true},
		"it no longer exists":                             {seen: true},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme.Scheme)
			if tc.live != nil {
				builder = builder.WithObjects(tc.live.DeepCopy())
			}
			l, live := lowered{read: tc.read}, builder.Build()
			if tc.lowered != nil {
				l.note(scalable.New(tc.lowered))
			}
			var cached *scalable.Resource
			if tc.cached != nil {
				cached = scalable.New(tc.cached)
			}
			for range 2 {
				if seen, err := l.isSeen(t.Context(), live, cached); err != nil || seen != tc.seen {
					t.Errorf("got %t and %v, want %t", seen, err, tc.seen)
				}
			}
		})
	}
}
