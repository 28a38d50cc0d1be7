// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const (
	available = "object.?status.provisioning.state.orValue('') == 'available' && !has(object.spec.consumerRef)"
	usedBy    = "object.?spec.consumerRef.name.orValue('')"
)

// hosts returns a correct source with changes.
func hosts(change func(*v1alpha1.CapacitySource)) []v1alpha1.CapacitySource {
	source := v1alpha1.CapacitySource{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHost", Free: available, Consumer: usedBy}
	if change != nil {
		change(&source)
	}
	return []v1alpha1.CapacitySource{source}
}

func TestPoolsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		given     []v1alpha1.CapacitySource
		zone      string
		want      []string
		wantError string
	}{
		"none":        {},
		"all objects": {given: hosts(nil), want: []string{"BareMetalHosts"}},
		"with labels of type and zone": {zone: "rack-a", given: hosts(func(s *v1alpha1.CapacitySource) {
			s.Namespace, s.Selector = "hosts", &metav1.LabelSelector{MatchLabels: map[string]string{"owner": "me"}}
			s.ZoneLabel, s.InstanceTypeLabel = "example.com/rack", "example.com/type"
		}), want: []string{"BareMetalHosts with labels owner=me,example.com/rack=rack-a,example.com/type=large in namespace hosts"}},
		"the same twice": {given: append(hosts(nil), hosts(nil)...), want: []string{"BareMetalHosts"}},
		"two":            {given: append(hosts(nil), hosts(func(s *v1alpha1.CapacitySource) { s.Kind = "Rack" })...), want: []string{"BareMetalHosts", "Racks"}},
		"no zone":        {given: hosts(func(s *v1alpha1.CapacitySource) { s.ZoneLabel = "rack" }), wantError: "capacityFrom[0].zoneLabel: the offering has no zones"},
		"a wrong label":  {given: hosts(func(s *v1alpha1.CapacitySource) { s.InstanceTypeLabel = "a b" }), wantError: "capacityFrom[0].instanceTypeLabel"},
		"a wrong selector": {given: hosts(func(s *v1alpha1.CapacitySource) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}), wantError: "capacityFrom[0].selector"},
		"a wrong version":    {given: hosts(func(s *v1alpha1.CapacitySource) { s.APIVersion = "a/b/c" }), wantError: "capacityFrom[0].apiVersion"},
		"a wrong expression": {given: hosts(func(s *v1alpha1.CapacitySource) { s.Free = "object." }), wantError: "capacityFrom[0].free: the expression does not compile"},
		"an unknown variable": {given: hosts(func(s *v1alpha1.CapacitySource) { s.Consumer = "host.spec" }),
			wantError: "capacityFrom[0].consumer: the expression does not compile"},
		"Secrets": {given: hosts(func(s *v1alpha1.CapacitySource) { s.APIVersion, s.Kind = "v1", "Secret" }), wantError: "cannot be counted"},
		"bootstrap data": {given: hosts(func(s *v1alpha1.CapacitySource) {
			s.APIVersion, s.Kind = "bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig"
		}), wantError: "cannot be counted"},
	} {
		t.Run(name, func(t *testing.T) {
			pools, err := PoolsOf(tc.given, "large", tc.zone)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got the error %v, want %q in one line", err, tc.wantError)
				}
				return
			}
			var got []string
			for _, pool := range pools {
				got = append(got, pool.String())
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A template has a limited number of watches. The first sources are counted.
func TestCountable(t *testing.T) {
	var pools []Pool
	for i := range 2 * mostSources {
		pools = append(pools, Pool{Source: Source{Kind: fmt.Sprint("Host", i)}}, Pool{Source: Source{Kind: fmt.Sprint("Host", i)}, Labels: "size=large"})
	}
	if got := countable(pools); len(got) != mostSources || !got.Has(pools[0].Source) || got.Has(pools[len(pools)-1].Source) {
		t.Errorf("got %d sources", len(got))
	}
}

func TestEvaluate(t *testing.T) {
	free := map[string]any{"spec": map[string]any{}, "status": map[string]any{"provisioning": map[string]any{"state": "available"}}}
	used := map[string]any{"spec": map[string]any{"consumerRef": map[string]any{"name": "m-1"}}, "status": map[string]any{"provisioning": map[string]any{"state": "provisioned"}}}
	ips := map[string]any{"status": map[string]any{"ipAddresses": map[string]any{"free": int64(7)}}}
	many := make([]any, 20_000)
	for name, tc := range map[string]struct {
		free, consumer string
		content        map[string]any
		want           result
		wantFailed     string
	}{
		"a free host":                {free: available, consumer: usedBy, content: free, want: result{free: 1}},
		"a host in use":              {free: available, consumer: usedBy, content: used, want: result{consumer: "m-1"}},
		"a number":                   {free: "object.status.ipAddresses.free", content: ips, want: result{free: 7, number: true}},
		"a computed number":          {free: "object.status.ipAddresses.free / 2.0", content: map[string]any{"status": map[string]any{"ipAddresses": map[string]any{"free": 7.0}}}, want: result{free: 3, number: true}},
		"less than none":             {free: "-1", content: ips, want: result{number: true}},
		"an unsigned number":         {free: "3u", content: ips, want: result{free: 3, number: true}},
		"an enormous number":         {free: "1.0 / 0.0", content: ips, want: result{free: 1<<31 - 1, number: true}},
		"a number as text":           {free: "int(object.data.free)", content: map[string]any{"data": map[string]any{"free": "12"}}, want: result{free: 12, number: true}},
		"a quota":                    {free: "quantity(object.hard).sub(quantity(object.used)).asInteger()", content: map[string]any{"hard": "20", "used": "4"}, want: result{free: 16, number: true}},
		"no number":                  {free: "0.0 / 0.0", content: ips, wantFailed: "free: the result is no number"},
		"a field that is absent":     {free: "object.status.state == 'available'", content: ips, wantFailed: "free: no such key: state"},
		"a text":                     {free: "'yes'", content: ips, wantFailed: "free: the result must be a bool or a number"},
		"a consumer of another type": {free: "true", consumer: "1", content: ips, wantFailed: "consumer: the result must be a string"},
		"a consumer that is absent":  {free: "true", consumer: "object.spec.name", content: ips, wantFailed: "consumer: no such key: spec"},
		"too much work":              {free: "object.many.all(a, object.many.all(b, a == b))", content: map[string]any{"many": many}, wantFailed: "cost limit"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Source{Free: tc.free, Consumer: tc.consumer}.evaluate(tc.content)
			if !strings.Contains(got.failed, tc.wantFailed) {
				t.Errorf("got %q, want %q", got.failed, tc.wantFailed)
			}
			if tc.wantFailed == "" && got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
