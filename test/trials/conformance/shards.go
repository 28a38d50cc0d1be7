// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	_ "embed" // for the NodePool
	"regexp"
)

//go:embed manifests/two-cpus.yaml
var twoCPUs []byte

// shard is a part of a suite that runs on a stack of its own. Specs mostly wait, so several run at the same time.
type shard struct {
	// name is that of its results and logs.
	name string
	// suite is the name of the package in Karpenter's test/suites.
	suite string
	// focus matches the description of the suite and the text of a spec.
	focus *regexp.Regexp
	// nodePool is the default NodePool, and empty for that of the suites.
	nodePool []byte
	// fault is a flag of the suites with the condition of the Nodes that it makes unhealthy; empty if there are none.
	fault string
	// restarts is whether the infrastructure provider can restart machines, so that Nodes are not replaced at once.
	restarts bool
}

// shards together have all specs of the suites, and start in this order, the longest first. A spec that none of them has is reported as
// failed.
var shards = []shard{
	{name: "integration", suite: "regression", focus: regexp.MustCompile(`^Regression (Integration|Chaos|DefaultTopologySpreadConstraints|Performance)`)},
	{name: "drift", suite: "disruption", focus: regexp.MustCompile(`^Disruption (Drift|Expiration)`)},
	{name: "buffers", suite: "regression", focus: regexp.MustCompile(`^Regression CapacityBuffer`), nodePool: twoCPUs},
	{name: "static", suite: "regression", focus: regexp.MustCompile(`^Regression StaticCapacity`)},
	{name: "repair", suite: "disruption", focus: regexp.MustCompile(`^Disruption (Termination|TerminateFirst|Repair)`), fault: "--repair-condition=ReadonlyFilesystem=True"},
	{name: "nodeclaims", suite: "regression", focus: regexp.MustCompile(`^Regression NodeClaim`)},
	{name: "reboot", suite: "disruption", focus: regexp.MustCompile(`^Disruption Reboot`), fault: "--reboot-condition=KernelDeadlock=True", restarts: true},
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
	{regexp.MustCompile(`^Disruption (Repair|Reboot)`), "12 of the 14 wait for 10 minutes and more, the toleration of the repair policies, counted from the creation of a Node", true},
	{regexp.MustCompile(`^Disruption Drift Failure should not disrupt a drifted node if the replacement node registers but never initialized`), "it waits for 12 minutes, until Karpenter has given up a replacement and for 2 minutes after that", true},
	{regexp.MustCompile(`^Disruption TerminateFirst`), "it changes the environment of a Deployment named karpenter, and here the operator is a process", false},
	{regexp.MustCompile(`^Regression NodeClaim .* should delete a NodeClaim after the registration timeout when the node doesn't register`), labelAtRegistration, false},
	{regexp.MustCompile(`^Disruption Drift Failure should not disrupt a drifted node if the replacement node never registers`), labelAtRegistration, false},
	{regexp.MustCompile(`^Regression NodeClaim .* should delete a NodeClaim if it references a NodeClass that isn't Ready`), `it denies changes of the status by the name of the kind and "es", which is no name of this resource`, false},
}

// labelAtRegistration is why a spec that denies the creation of Nodes with a label of their NodeClaim does not apply.
const labelAtRegistration = "it denies Nodes with a label of their NodeClaim, and here Karpenter adds it when the Node registers: the machines of a MachineSet share what is in their bootstrap data"
