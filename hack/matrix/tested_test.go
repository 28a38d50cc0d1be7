// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
)

// The kubectl plugin warns of the versions that the table does not have.
func TestPluginKnowsTheTestedVersions(t *testing.T) {
	all, err := cells("../..")
	if err != nil {
		t.Fatal(err)
	}
	span := func(of func(Cell) string) build.Range {
		versions := lo.Map(all, func(cell Cell, _ int) string { return of(cell) })
		return build.Range{Oldest: minor(slices.MinFunc(versions, compare)), Newest: minor(slices.MaxFunc(versions, compare))}
	}
	for name, tc := range map[string]struct{ got, want build.Range }{
		"Kubernetes":  {build.Kubernetes, span(func(c Cell) string { return c.Kubernetes })},
		"Cluster API": {build.ClusterAPI, span(func(c Cell) string { return c.ClusterAPI })},
	} {
		if tc.got != tc.want {
			t.Errorf("internal/build has %s of %s, and the table has %s", tc.got, name, tc.want)
		}
	}
}
