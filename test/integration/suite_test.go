// SPDX-License-Identifier: Apache-2.0

// Package integration tests the operator against a real API server, with Cluster
// API's own reconcilers and all controllers of Karpenter core, in one process.
// Machines are those of test/harness/infrastructure.
//
// The operator runs once for all specs of a process. Each spec has its own template and NodePool
// (see fixture), and its claims are deleted while the next spec runs; at the end nothing must be
// left. `make test` runs the suite in several processes, which share nothing: each has its own
// control plane.
package integration

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	// patience is how long a spec waits for what must happen.
	patience = 4 * time.Minute
	// interval is how often it checks.
	interval = 250 * time.Millisecond
	// still is how long it checks that something does not happen.
	still = 2 * time.Second
)

// long is for containers whose specs take long: they run first, so that at the end no process
// runs such a spec while the others have nothing to do.
const long = SpecPriority(1)

// last is for containers whose specs interrupt the operator's connections: they run after all others. At the end of an
// outage timers start again, and the clock that later shifts does not make an outage older.
const last = SpecPriority(-1)

// env is the environment that all specs share.
var env *environment

func TestIntegration(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make test, or set it to a folder with etcd and kube-apiserver")
	}
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(interval)
	SetDefaultConsistentlyDuration(still)
	SetDefaultConsistentlyPollingInterval(interval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RegisterFailHandler(Fail)
	RunSpecs(t, "Integration")
}

var _ = BeforeSuite(func() {
	ctx, cancel := context.WithCancel(context.Background())
	env = newEnvironment(served, nil)
	env.startControlPlane(ctx)
	env.follow(ctx)
	// Cleanups run in reverse order: what is running stops before the control plane.
	DeferCleanup(func() {
		cancel()
		env.running.Wait()
	})
	env.startClusterAPI(ctx)
	env.createCluster(ctx)
	env.grant(ctx)
	env.startOperator(ctx)
})

var _ = JustAfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		AddReportEntry("objects at the time of the failure", env.dump(ctx), ReportEntryVisibilityFailureOrVerbose)
	}
})

var _ = AfterSuite(func(ctx SpecContext) {
	if env == nil || env.state == nil {
		return // it never started
	}
	failed := suiteFailed
	suiteFailed = true // so that the logs stay, unless all of this holds
	Expect(env.requests.since(0, func(r request) bool { return r.forbidden })).To(BeEmpty(), "forbidden requests of the operator")
	Expect(env.requests.since(0, withoutEffect)).To(BeEmpty(), "patches of NodeClaims that cannot change anything")
	By("waiting until nothing is left")
	Eventually(ctx, func() []string {
		env.deleteStrays(ctx)
		return env.leftovers(ctx)
	}).Should(BeEmpty(), func() string { return env.dump(ctx) })
	env.expectHistory(ctx)
	suiteFailed = failed
})
