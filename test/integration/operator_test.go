// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// timings are shorter than in production where the simulated infrastructure is faster than they
// allow for. On the local stack the operator uses its defaults.
var timings = func() clients.Timings {
	t := clients.ProductionTimings()
	// Specs cut only links of the operator, so no other controller has caches that recover.
	t.Settle, t.ReadyPoll, t.Recovery = 4*time.Second, time.Second, time.Second
	return t
}()

// startOperator starts the operator as its binary does (cmd/main.go).
func (e *environment) startOperator(ctx context.Context) {
	GinkgoHelper()
	e.requests = &requestLog{}
	ctx, op := e.newOperator(ctx, e.requests)
	e.clock = &shiftedClock{caughtUp: func(atMost time.Duration) { e.claimsCaughtUp(ctx, atMost) }}
	op.Clock = e.clock
	op.Clusters.Timings = timings
	if e != env {
		op.Manager = second{op.Manager}
	}
	op.Manager = e.queues.manager(op.Manager)
	state, err := controller.Setup(ctx, op)
	Expect(err).NotTo(HaveOccurred())
	e.start(ctx, op)
	e.operator, e.state = op, state
}

// newOperator returns an operator without controllers, whose requests are logged.
func (e *environment) newOperator(ctx context.Context, requests *requestLog) (context.Context, *operator.Operator) {
	GinkgoHelper()
	options, err := operator.ParseOptions(
		"--cluster-name="+e.cluster.Name,
		"--cluster-namespace="+e.cluster.Namespace,
		"--allowed-secrets=bootstrap",
		"--bind-address=127.0.0.1",
		"--metrics-port=0",
		"--health-probe-port=0",
		"--disable-leader-election=true",
		"--feature-gates=NodeRepair=true",
		"--ignore-dra-requests=false",
		"--log-output-paths="+e.logFile("operator"),
		"--log-error-output-paths="+e.logFile("operator"),
	)
	Expect(err).NotTo(HaveOccurred())
	workload, management := e.asOperator(), e.management.asOperator()
	workload.Wrap(e.toWorkload.wrap)
	management.Wrap(e.toManagement.wrap)
	workload.Wrap(requests.wrap)
	management.Wrap(requests.wrap)
	ctx, op, err := operator.New(ctx, workload, management, options)
	Expect(err).NotTo(HaveOccurred())
	return ctx, op
}

var _ = Describe("The operator", func() {
	It("stops when it is interrupted while it starts", func(ctx SpecContext) {
		operatorCtx, stop := context.WithCancel(ctx)
		operatorCtx, op := env.newOperator(operatorCtx, &requestLog{})
		stop()
		ended := make(chan error, 1)
		go func() { ended <- op.Start(operatorCtx) }()
		Eventually(ctx, ended).WithTimeout(time.Minute).Should(Receive(Succeed()))
	})
})
