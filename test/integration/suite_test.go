// SPDX-License-Identifier: Apache-2.0

// Package integration tests the operator against a real API server, with Cluster
// API's own reconcilers and all controllers of Karpenter core, in one process.
// Machines are those of test/infrastructure.
//
// The operator runs once for all specs of a process. Each spec has a template and a
// NodePool of its own (see fixture) and leaves its claims to be deleted while the next
// one runs; at the end nothing may be left. `make test` runs the suite in several
// processes, which share nothing: each has a control plane of its own.
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
	// patience is for how long a spec waits for what must come.
	patience = 4 * time.Minute
	// interval is how often it looks.
	interval = 250 * time.Millisecond
	// still is for how long it watches that something does not come.
	still = 2 * time.Second
)

// long is for containers whose specs take long: they run first, so that at the end no process
// runs such a spec while the others have nothing to do.
const long = SpecPriority(1)

// env is what all specs share.
var env *environment

func TestIntegration(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: run make test, or set it to a folder with etcd and kube-apiserver")
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
	Expect(env.requests.since(0, func(r request) bool { return r.forbidden })).To(BeEmpty(), "what the operator has no right to do")
	By("waiting until nothing is left")
	Eventually(ctx, env.leftovers).Should(BeEmpty(), func() string { return env.dump(ctx) })
	env.expectHistory(ctx)
	suiteFailed = failed
})
