// SPDX-License-Identifier: Apache-2.0

package build

import "github.com/blang/semver/v4"

// Range is a range of minor versions. Both ends belong to it.
type Range struct{ Oldest, Newest string }

// These are the versions that this one is tested with (docs/compatibility.md). A test of hack/matrix compares them with those of
// its table.
var (
	Kubernetes = Range{Oldest: "v1.34", Newest: "v1.37"}
	ClusterAPI = Range{Oldest: "v1.11", Newest: "v1.14"}
)

// Has reports whether a version is in the range. What is no version is not.
func (r Range) Has(version string) bool {
	found, err := semver.ParseTolerant(version)
	oldest, newest := semver.MustParse(r.Oldest[1:]+".0"), semver.MustParse(r.Newest[1:]+".0")
	found.Patch, found.Pre, found.Build = 0, nil, nil
	return err == nil && found.GE(oldest) && found.LE(newest)
}

// String returns both ends.
func (r Range) String() string { return r.Oldest + " to " + r.Newest }
