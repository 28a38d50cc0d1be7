// SPDX-License-Identifier: Apache-2.0

package hash_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karpenter-capi/karpenter-capi/internal/hash"
)

// TestOf pins hashes, because clusters have them stored.
func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		values []any
		want   string
	}{
		"nothing":        {nil, "v7-e3b0c44298fc1c149afbf4c8996fb924"},
		"two values":     {[]any{"a", 1}, "v7-5d5e06e867c8da8497b14e4649f65792"},
		"one value":      {[]any{"a1"}, "v7-293def4a5856e01c69acdff32a751b15"},
		"a sorted map":   {[]any{map[string]string{"b": "2", "a": "1"}}, "v7-971995fb6dec39908056a86b8fedf359"},
		"a quantity":     {[]any{resource.MustParse("1024Mi")}, "v7-2fd19ba7b45047f55c8eca3b96c5d30d"},
		"the same again": {[]any{resource.MustParse("1Gi")}, "v7-2fd19ba7b45047f55c8eca3b96c5d30d"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hash.Of("v7", tc.values...); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A hash is a valid label value, and its part in names ends a DNS label. SameVersion finds the version of each.
func TestSubjects(t *testing.T) {
	for name, subject := range map[string]hash.Subject{
		"Resource": hash.Resource, "Copy": hash.Copy, "InPlace": hash.InPlace, "Kubelet": hash.Kubelet, "Infrastructure": hash.Infrastructure,
		"Bootstrap": hash.Bootstrap, "Revision": hash.Revision, "From": hash.From, "Accepted": hash.Accepted,
	} {
		made := hash.Of(subject, name)
		if problems := validation.IsValidLabelValue(made); len(problems) > 0 {
			t.Errorf("%s: %s: %v", name, made, problems)
		}
		inName := hash.InName(made)
		if problems := validation.IsDNS1123Label("x-" + inName); len(problems) > 0 || len(inName) != 12 || !strings.HasPrefix(made, string(subject)+"-"+inName) {
			t.Errorf("%s: %s in names: %s %v", name, made, inName, problems)
		}
		if !hash.SameVersion(made, hash.Of(subject, "other")) || hash.SameVersion(made, hash.Of("v0", name)) || hash.SameVersion(made, "abc") || hash.SameVersion(made, "") {
			t.Errorf("%s: the version of %s is not found", name, made)
		}
	}
}
