// SPDX-License-Identifier: Apache-2.0

//go:build install

package clusterctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/test/audit"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// startStack starts a stack without an operator and without the CRDs that are to be installed. It ends with the test.
func startStack(t *testing.T) (context.Context, *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	// An interrupt ends the waiting, not the process, so that the stack is stopped in order.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	s, err := stack.Up(ctx, stack.Options{Dir: t.TempDir(), WithoutOperator: true, Progress: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		// The test's own context has ended by now.
		g.Expect(s.Down(context.Background())).To(Succeed())
	})
	for _, crd := range crdsOf(ctx, g, s, ours, karpenters) {
		g.Expect(s.Workload.Delete(ctx, &crd)).To(Succeed())
	}
	g.Expect(s.Await(ctx, time.Minute, "the stack's CRDs to go", func(ctx context.Context) (bool, string, error) {
		left := crdsOf(ctx, g, s, ours, karpenters)
		return len(left) == 0, fmt.Sprintf("%d are left", len(left)), nil
	})).To(Succeed())
	return ctx, s
}

// The API groups of this project and of Karpenter.
const (
	ours       = "karpenter.cluster.x-k8s.io"
	karpenters = "karpenter.sh"
)

// crdsOf returns the CRDs of API groups.
func crdsOf(ctx context.Context, g *WithT, s *stack.Stack, groups ...string) []apiextensionsv1.CustomResourceDefinition {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	g.Expect(s.Workload.List(ctx, list)).To(Succeed())
	return lo.Filter(list.Items, func(crd apiextensionsv1.CustomResourceDefinition, _ int) bool {
		return slices.Contains(groups, crd.Spec.Group)
	})
}

func names(crds []apiextensionsv1.CustomResourceDefinition) []string {
	return lo.Map(crds, func(crd apiextensionsv1.CustomResourceDefinition, _ int) string { return crd.Name })
}

// counts is how much of everything there is.
type counts struct {
	pods, running, claims, machines, nodes int
}

func (c counts) String() string {
	return fmt.Sprintf("pods %d/%d running, claims %d, machines %d, nodes %d", c.running, c.pods, c.claims, c.machines, c.nodes)
}

// await waits until the counts are as wanted.
func await(ctx context.Context, t *testing.T, s *stack.Stack, what string, within time.Duration, wanted func(counts) bool) counts {
	t.Helper()
	var now counts
	err := s.Await(ctx, within, what, func(ctx context.Context) (bool, string, error) {
		pods, claims := &corev1.PodList{}, &karpv1.NodeClaimList{}
		machines, nodes := &clusterv1.MachineList{}, &corev1.NodeList{}
		for list, options := range map[client.ObjectList][]client.ListOption{
			pods: {client.MatchingLabels{"demo": "true"}}, claims: nil, machines: nil, nodes: nil,
		} {
			if err := s.Workload.List(ctx, list, options...); err != nil {
				return false, err.Error(), nil
			}
		}
		now = counts{pods: len(pods.Items), claims: len(claims.Items), machines: len(machines.Items), nodes: len(nodes.Items)}
		now.running = lo.CountBy(pods.Items, func(pod corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
		})
		return wanted(now), now.String(), nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Logf("%s: %s", what, now)
	return now
}

// settle makes Karpenter consolidate no more, and waits until what it has begun is done.
func settle(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	pool := &karpv1.NodePool{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "general"}, pool)).To(Succeed())
	frozen := pool.DeepCopy()
	frozen.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0"}}
	g.Expect(s.Workload.Patch(ctx, frozen, client.MergeFrom(pool))).To(Succeed())
	quiet := 0
	g.Expect(s.Await(ctx, 3*time.Minute, "Karpenter to have nothing under way", func(ctx context.Context) (bool, string, error) {
		claims := &karpv1.NodeClaimList{}
		if err := s.Workload.List(ctx, claims); err != nil {
			return false, err.Error(), nil
		}
		busy := lo.CountBy(claims.Items, func(claim karpv1.NodeClaim) bool {
			return !claim.DeletionTimestamp.IsZero() || !claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized) ||
				claim.StatusConditions().IsTrue(karpv1.ConditionTypeDisruptionReason)
		})
		// A decision that was made before the change may just be on its way.
		quiet = lo.Ternary(busy == 0, quiet+1, 0)
		return quiet > 50, fmt.Sprintf("%d claims come or go", busy), nil
	})).To(Succeed())
}

// nodes returns the Nodes by name, with whether they are ready.
func nodes(ctx context.Context, g *WithT, s *stack.Stack) map[string]bool {
	list := &corev1.NodeList{}
	g.Expect(s.Workload.List(ctx, list)).To(Succeed())
	return lo.SliceToMap(list.Items, func(node corev1.Node) (string, bool) {
		return node.Name, lo.ContainsBy(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	})
}

// stays checks for a while that no Node goes, comes or is not ready.
func stays(ctx context.Context, t *testing.T, s *stack.Stack, before map[string]bool) {
	t.Helper()
	g := NewWithT(t)
	g.Consistently(ctx, func() map[string]bool { return nodes(ctx, g, s) }).
		WithTimeout(15*time.Second).WithPolling(time.Second).Should(Equal(before), "the Nodes")
}

// apply creates what the demo's files have.
func apply(ctx context.Context, t *testing.T, s *stack.Stack, files ...string) {
	t.Helper()
	g := NewWithT(t)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(root(t), "test", "demo", "manifests", file))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Create(ctx, content)).To(Succeed(), file)
	}
}

// deployments returns those of the demo.
func deployments(ctx context.Context, g *WithT, s *stack.Stack) []appsv1.Deployment {
	list := &appsv1.DeploymentList{}
	g.Expect(s.Workload.List(ctx, list, client.MatchingLabels{"demo": "true"})).To(Succeed())
	return list.Items
}

// gone checks that an object is not there.
func gone(ctx context.Context, g Gomega, s *stack.Stack, object client.Object) {
	err := s.Workload.Get(ctx, client.ObjectKeyFromObject(object), object)
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%T %s: %v", object, object.GetName(), err)
}

// checkRequests checks all requests of the operator: that they came from its ServiceAccount, and none was denied.
func checkRequests(t *testing.T, s *stack.Stack, account string) {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join(s.LogDir(), "audit.log")
	entries, _, err := (audit.Log{Path: file}).Since(0)
	g.Expect(err).NotTo(HaveOccurred())
	asked := lo.Filter(entries, func(e audit.Entry, _ int) bool { return e.By(operator.Name) })
	denied := lo.Filter(asked, func(e audit.Entry, _ int) bool { return e.ResponseStatus.Code == 401 || e.ResponseStatus.Code == 403 })
	g.Expect(lo.Map(denied, func(e audit.Entry, _ int) string { return e.String() })).To(BeEmpty(), "requests that were denied")
	g.Expect(audit.WritesBy(operator.Name, asked)).NotTo(BeEmpty())

	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	users := map[string]int{}
	for line := range bytes.Lines(content) {
		request := struct {
			UserAgent string
			User      struct{ Username string }
		}{}
		if json.Unmarshal(line, &request) == nil && (&audit.Entry{UserAgent: request.UserAgent}).By(operator.Name) {
			users[request.User.Username]++
		}
	}
	g.Expect(users).To(And(HaveLen(1), HaveKey(account)), "who the operator was for the API server")
	t.Logf("%d requests of the operator, none denied; writes: %v", len(asked), audit.Count(audit.WritesBy(operator.Name, asked)))
}

// root is the root of this repository.
func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", ".."))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return path
}

// binaries is the folder that make builds them in.
func binaries(t *testing.T) string {
	t.Helper()
	return filepath.Join(root(t), "bin")
}

// showEnd shows the last lines of a log.
func showEnd(t *testing.T, file string) {
	t.Helper()
	t.Logf("the end of %s:\n%s", file, (&stack.Component{LogFile: file}).LogTail(40))
}
