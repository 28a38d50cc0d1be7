// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

// A reconcile sees each Machine in the latest version that the process knows. It reads those that are in doubt, and
// concludes nothing from a read that fails.
func TestNewest(t *testing.T) {
	type links = map[string]types.UID // by Machine
	version := func(version string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
		return machine("m", append(change, func(m *clusterv1.Machine) { m.ResourceVersion = version })...)
	}
	elsewhere := func(m *clusterv1.Machine) { m.Labels[clusterv1.MachineDeploymentNameLabel] = "other" }
	again := func(m *clusterv1.Machine) { m.UID = "again" }
	for name, tc := range map[string]struct {
		known, cached *clusterv1.Machine
		live          *clusterv1.Machine // in the API server; nil if it does not exist
		doubtful      bool
		fails         bool
		want          links
		wantError     bool
	}{
		"the cache is behind":                       {known: version("5", linkedTo("c")), cached: version("4"), want: links{"m": "c"}},
		"the cache has the same":                    {known: version("5", linkedTo("c")), cached: version("5", linkedTo("c")), want: links{"m": "c"}},
		"the cache is ahead":                        {known: version("5", linkedTo("c")), cached: version("6"), want: links{"m": ""}},
		"the cache lacks it":                        {known: version("5"), live: machine("m", linkedTo("c")), want: links{"m": "c"}},
		"it no longer exists":                       {known: version("5", linkedTo("c")), want: links{}},
		"another one has its name":                  {known: version("5", linkedTo("c")), live: machine("m", again), want: links{}},
		"it is of another resource by now":          {known: version("5", linkedTo("c")), live: machine("m", elsewhere), want: links{}},
		"in doubt, and it was linked":               {known: version("5"), cached: version("5"), live: machine("m", linkedTo("c")), doubtful: true, want: links{"m": "c"}},
		"in doubt, and the API server is silent":    {known: version("5"), cached: version("5"), doubtful: true, fails: true, wantError: true},
		"the cache lacks it, and the server is out": {known: version("5", linkedTo("c")), fails: true, wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			live := interceptor.NewClient(newAPI(objects...), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if tc.fails {
						return errors.New("no answer")
					}
					return c.Get(ctx, key, object, options...)
				},
			})
			r := &recent{}
			if r.add(resourceName, tc.known); tc.doubtful {
				r.doubt(resourceName, tc.known)
			}
			r.add("other", machine("of-other"))
			var cached []clusterv1.Machine
			if tc.cached != nil {
				cached = append(cached, *tc.cached)
			}
			all, err := r.newest(t.Context(), live, resourceName, cached)
			if (err != nil) != tc.wantError {
				t.Fatalf("got %v, want an error: %t", err, tc.wantError)
			}
			if err != nil {
				return
			}
			got := links{}
			for i := range all {
				got[all[i].Name] = lifecycle.ClaimUID(&all[i])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(all) != len(tc.want) {
				t.Errorf("%d Machines (-want +got):\n%s", len(all), diff)
			}
		})
	}
}

// Machines of one resource and of several are known at the same time.
func TestAllRecentMachinesAreKnown(t *testing.T) {
	r := &recent{}
	r.add("a", machine("a1"))
	r.add("a", machine("a2"))
	r.add("b", machine("b1"))
	r.forget("a", "a2")
	r.add("a", machine("a3"))
	for resource, want := range map[string][]string{"a": {"a1", "a3"}, "b": {"b1"}} {
		var got []string
		for _, known := range r.of(resource) {
			got = append(got, known.machine.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", resource, diff)
		}
	}
}
