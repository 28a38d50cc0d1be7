// SPDX-License-Identifier: Apache-2.0

package conformance

import "regexp"

// shard is a part of a suite that runs on a stack of its own. Specs mostly wait, so several run at the same time.
type shard struct {
	// name is that of its results and logs.
	name string
	// suite is the name of the package in Karpenter's test/suites.
	suite string
	// focus matches the description of the suite and the text of a spec.
	focus *regexp.Regexp
}

// shards together have all specs of the suites. A spec that none of them has is reported as failed.
var shards = []shard{
	{"integration", "regression", regexp.MustCompile(`^Regression (Integration|Chaos|DefaultTopologySpreadConstraints|Performance)`)},
	{"capacity", "regression", regexp.MustCompile(`^Regression (StaticCapacity|NodeClaim)`)},
	{"buffers", "regression", regexp.MustCompile(`^Regression CapacityBuffer`)},
	{"drift", "disruption", regexp.MustCompile(`^Disruption (Drift|Expiration)`)},
	{"repair", "disruption", regexp.MustCompile(`^Disruption (Termination|Reboot|TerminateFirst|Repair)`)},
}

// skip is a group of specs that do not run.
type skip struct {
	specs  *regexp.Regexp
	reason string
	// long is whether they run with -full.
	long bool
}

var skips = []skip{
	{regexp.MustCompile(`^Regression Performance`), "it measures how long Karpenter with kwok takes; see make bench", true},
	{regexp.MustCompile(`^Disruption TerminateFirst`), "it changes the environment of a Deployment named karpenter, and here the operator is a process", false},
}
