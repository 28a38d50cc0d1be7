// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/monitoring"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rights"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// neverActive are the alerts whose condition never holds in TestMonitoring, and why. The unit tests of the rules let them fire
// (test/manifests/charts).
var neverActive = map[string]string{
	"KarpenterCAPINotSynced":           "Karpenter's view would have to be incomplete for 15 minutes",
	"KarpenterCAPIReconcileErrors":     "a controller would need 60 errors within 10 minutes",
	"KarpenterCAPIRequestsWait":        "the API server would have to be too slow for 10 minutes",
	"KarpenterCAPIMachinesSpare":       "a Machine would have to be spare for 3 hours",
	"KarpenterCAPINodeClaimNotRemoved": "a deletion would have to last for 2 hours",
	"KarpenterCAPIKubeconfigExpires":   "credentials would have to grow old for a day",
	"KarpenterCAPIRolloutStopped":      "a new Node of a rollout would have to fail, as in TestRollout",
}

// Prometheus scrapes an operator that authenticates its clients, with a token and the role of the installation. Each panel of the
// dashboards shows something, and the condition of each alert holds when what it is about happens.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ports, err := stack.FreePorts(2)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, s := newStack(t, stack.Options{Placement: stack.InWorkload, OperatorArgs: []string{
		"--insecure-diagnostics=false", fmt.Sprintf("--metrics-port=%d", ports[0]),
	}})
	run := newMonitored(ctx, t, g, s, ports)
	create(ctx, g, s, kinds.MachineDeployment, "monitoring.yaml")
	run.awaitRunning(ctx, g, 1)
	// A rate needs another launch after the first one was scraped.
	scalePods(ctx, g, s, "monitoring-runs", 2)
	run.awaitRunning(ctx, g, 2)
	joinUntainted(ctx, g, s, "boots")
	run.awaitActive(ctx, g, "KarpenterCAPITemplateNotReady", "KarpenterCAPINoOfferings", "KarpenterCAPIOfferingsInvalid", "KarpenterCAPICapacityInaccurate",
		"KarpenterCAPINodesNotTainted", "KarpenterCAPILaunchesFail", "KarpenterCAPIPodsUnschedulable")

	setControlPlane(ctx, g, s, "v1.36.3", "v1.35.0")
	scalePods(ctx, g, s, "monitoring-runs", 3)
	run.awaitActive(ctx, g, "KarpenterCAPIMachinesNotProgressing", "KarpenterCAPINodeClaimsWaiting")
	run.awaitPanels(ctx, g)
	setControlPlane(ctx, g, s, "v1.36.3", "")

	run.breakKubeconfig(ctx, g)
	run.stopOperator(ctx, g)
	g.Expect(s.StopComponent(ctx, stack.ManagementPrefix+stack.APIServer)).To(Succeed())
	run.awaitActive(ctx, g, "KarpenterCAPIClusterUnreachable")
	g.Expect(s.StartComponent(ctx, stack.ManagementPrefix+stack.APIServer)).To(Succeed())

	run.expectAll(ctx, t, g)
	run.draw(ctx, g)
	removeAll(ctx, g, s)
}

// monitored is a stack whose operator Prometheus scrapes.
type monitored struct {
	s          *stack.Stack
	chart      *charts.Monitoring
	target     monitoring.Target
	asked      *monitoring.Questions
	prometheus *monitoring.Server
	started    time.Time
}

// newMonitored starts Prometheus, which ends with the test, and waits until it has scraped the operator. The operator serves its metrics
// on the first port, and Prometheus its API on the second one.
func newMonitored(ctx context.Context, t *testing.T, g *WithT, s *stack.Stack, ports []int) *monitored {
	helm := &charts.Helm{Dir: t.TempDir()}
	rendered, err := helm.Template(ctx, charts.Operator, charts.MatrixNamespace, charts.Operator, charts.MonitoringValues())
	g.Expect(err).NotTo(HaveOccurred())
	chart, err := charts.MonitoringOf(rendered)
	g.Expect(err).NotTo(HaveOccurred())
	granted, err := rights.Read(charts.Root())
	g.Expect(err).NotTo(HaveOccurred())
	run := &monitored{s: s, chart: chart, started: time.Now(), target: monitoring.Target{
		Namespace: charts.MatrixNamespace, Job: charts.Operator,
		Address: fmt.Sprintf("127.0.0.1:%d", ports[0]), Token: newAccount(ctx, g, s, "prometheus"),
	}}
	bind(ctx, g, s, "prometheus", granted["metrics-reader-role"])
	run.asked, err = monitoring.QuestionsOf(ctx, chart, run.target)
	g.Expect(err).NotTo(HaveOccurred())
	run.prometheus, err = monitoring.Start(ctx, t.TempDir(), ports[1], run.target, chart.Rules)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		run.prometheus.Stop()
		if t.Failed() {
			t.Logf("the end of Prometheus's log:\n%s", (&stack.Component{LogFile: run.prometheus.LogFile}).LogTail(40))
		}
	})
	up := fmt.Sprintf("up{job=%q} == 1", run.target.Job)
	g.Eventually(ctx, func() (sets.Set[string], error) { return run.prometheus.Answers(ctx, []string{up}) }).
		WithTimeout(time.Minute).WithPolling(poll).Should(HaveKey(up), "the first scrape")
	return run
}

// awaitRunning waits until some Pods of monitoring-runs run.
func (m *monitored) awaitRunning(ctx context.Context, g *WithT, count int) {
	g.Eventually(ctx, func() (int, error) { return runningPods(ctx, m.s, "monitoring-runs") }).
		WithTimeout(2*time.Minute).WithPolling(poll).Should(Equal(count), "Pods that run")
}

// awaitActive waits until the conditions of alerts hold.
func (m *monitored) awaitActive(ctx context.Context, g *WithT, alerts ...string) {
	g.Eventually(ctx, func() ([]string, error) {
		active, err := m.prometheus.Active(ctx)
		return monitoring.Missing(alerts, active, nil), err
	}).WithTimeout(2*time.Minute).WithPolling(poll).Should(BeEmpty(), "alerts whose condition does not hold")
}

// awaitPanels waits until each panel shows something.
func (m *monitored) awaitPanels(ctx context.Context, g *WithT) {
	g.Eventually(ctx, func() ([]string, error) {
		answered, err := m.prometheus.Answers(ctx, m.asked.Panels)
		return monitoring.Missing(m.asked.Panels, answered, nil), err
	}).WithTimeout(2*time.Minute).WithPolling(poll).Should(BeEmpty(), "queries of panels without a number")
}

// breakKubeconfig writes something that is no kubeconfig where the operator reads that of the management cluster, for some seconds.
func (m *monitored) breakKubeconfig(ctx context.Context, g *WithT) {
	_, kubeconfig := m.s.OperatorAccount(stack.Operator)
	content, err := os.ReadFile(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(kubeconfig, []byte("this is no kubeconfig"), 0o600)).To(Succeed())
	m.awaitActive(ctx, g, "KarpenterCAPIKubeconfigInvalid")
	g.Expect(os.WriteFile(kubeconfig, content, 0o600)).To(Succeed())
}

// stopOperator stops the operator. Meanwhile a user removes a NodeClaim by force, and pauses the Cluster, so that its Machine stays
// until the operator runs again and the Cluster is no longer paused.
func (m *monitored) stopOperator(ctx context.Context, g *WithT) {
	g.Expect(m.s.StopComponent(ctx, stack.Operator)).To(Succeed())
	m.awaitActive(ctx, g, "KarpenterCAPIDown")
	claim := claimOfType(ctx, g, m.s, "starts")
	g.Expect(m.s.Workload.Delete(ctx, claim)).To(Succeed())
	g.Expect(m.s.Workload.Patch(ctx, claim, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	setPaused(ctx, g, m.s, true)
	g.Expect(m.s.StartComponent(ctx, stack.Operator)).To(Succeed())
	m.awaitActive(ctx, g, "KarpenterCAPIMachinesUnlinked")
	setPaused(ctx, g, m.s, false)
}

// expectAll checks that each alert was evaluated, that the condition of each has held, and that each selector of the panels and alerts
// has series, also those of alerts whose condition has never held.
func (m *monitored) expectAll(ctx context.Context, t *testing.T, g *WithT) {
	failed, err := m.prometheus.Failed(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(failed).To(BeEmpty(), "alerts that Prometheus cannot evaluate")
	active, err := m.prometheus.EverActive(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(monitoring.Missing(m.asked.Alerts, active, neverActive)).To(BeEmpty(), "alerts whose condition has never held")
	selected, err := m.prometheus.Selected(ctx, m.asked.Selectors)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(monitoring.Missing(m.asked.Selectors, selected, nil)).To(BeEmpty(), "selectors without series")
	t.Logf("%d queries of panels have a number, the conditions of %d of %d alerts have held, and %d selectors have series",
		len(m.asked.Panels), active.Len(), len(m.asked.Alerts), selected.Len())
}

// draw writes a picture of what each dashboard has shown into out/ (see make dashboards).
func (m *monitored) draw(ctx context.Context, g *WithT) {
	folder := filepath.Join(charts.Root(), "out")
	g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	for dashboard, panels := range lo.GroupBy(m.chart.Panels, func(panel charts.Panel) string { return panel.Dashboard }) {
		records, err := m.prometheus.Record(ctx, panels, m.target, m.started)
		g.Expect(err).NotTo(HaveOccurred())
		picture, err := monitoring.Draw(records)
		g.Expect(err).NotTo(HaveOccurred())
		name := strings.TrimSuffix(strings.TrimPrefix(dashboard, charts.Operator+"-"), ".json")
		g.Expect(os.WriteFile(filepath.Join(folder, "dashboard-"+name+".svg"), picture, 0o644)).To(Succeed())
	}
}

// joinUntainted lets the Node of a machine join without the taint of unregistered Nodes, as with bootstrap data that lacks it. The machine
// itself never joins.
func joinUntainted(ctx context.Context, g *WithT, s *stack.Stack, instanceType string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "untainted"}}
	g.Eventually(ctx, func(g Gomega) string {
		node.Spec.ProviderID = claimOfType(ctx, g, s, instanceType).Status.ProviderID
		return node.Spec.ProviderID
	}).WithTimeout(time.Minute).WithPolling(poll).Should(HavePrefix("sim://"))
	g.Expect(s.Workload.Create(ctx, node)).To(Succeed())
}

// claimOfType returns the only NodeClaim of an instance type.
func claimOfType(ctx context.Context, g Gomega, s *stack.Stack, instanceType string) *karpv1.NodeClaim {
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims, client.MatchingLabels{corev1.LabelInstanceTypeStable: instanceType})).To(Succeed())
	g.Expect(lo.Map(claims.Items, func(claim karpv1.NodeClaim, _ int) string { return claim.Name })).To(HaveLen(1), "NodeClaims of %s", instanceType)
	return &claims.Items[0]
}

// setPaused sets whether the Cluster is paused.
func setPaused(ctx context.Context, g *WithT, s *stack.Stack, paused bool) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: stack.ClusterName}}
	g.Expect(s.Management.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused)))).To(Succeed())
}
