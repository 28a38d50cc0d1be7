// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/audit"
	"github.com/karpenter-capi/karpenter-capi/test/charts"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

const poll = 500 * time.Millisecond

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// newStack starts a stack without the operator, and without the CustomResourceDefinitions that the charts bring. It ends with
// the test.
func newStack(t *testing.T, separate bool) (context.Context, *stack.Stack) {
	t.Helper()
	if _, err := charts.Binary(); err != nil {
		t.Fatal(err)
	}
	// An interrupt ends the waiting, not the process, so that the stack is stopped in order.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	s, err := stack.Up(ctx, stack.Options{Dir: t.TempDir(), Separate: separate, WithoutOperator: true, Progress: t.Output()})
	if err != nil {
		t.Fatalf("the stack does not start: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := s.Down(context.Background()); err != nil {
			t.Errorf("the stack does not stop: %v", err)
		}
	})
	g := NewWithT(t)
	for _, name := range crdNames {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name = name
		g.Expect(client.IgnoreNotFound(s.Workload.Delete(ctx, crd))).To(Succeed())
	}
	g.Eventually(ctx, func() ([]string, error) { return presentCRDs(ctx, s) }).WithTimeout(time.Minute).WithPolling(poll).Should(BeEmpty())
	return ctx, s
}

// crdNames are the CustomResourceDefinitions of the chart.
var crdNames = []string{
	"capacitybuffers.autoscaling.x-k8s.io", "karpentermachinetemplates.karpenter.cluster.x-k8s.io",
	"nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "nodepools.karpenter.sh",
}

// presentCRDs returns those of them that are there.
func presentCRDs(ctx context.Context, s *stack.Stack) ([]string, error) {
	present := []string{}
	for _, name := range crdNames {
		err := s.Workload.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			present = append(present, name)
		}
	}
	return present, nil
}

// awaitServed waits until the API server tells its clients of the kinds that come with the chart, which is a moment after it
// has established them.
func awaitServed(ctx context.Context, g *WithT, s *stack.Stack) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	client, err := discovery.NewDiscoveryClientForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	for _, version := range []string{"karpenter.cluster.x-k8s.io/v1alpha1", "karpenter.sh/v1"} {
		g.Eventually(ctx, func() error {
			_, err := client.ServerResourcesForGroupVersion(version)
			return err
		}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed(), version)
	}
}

// createPrometheusCRDs makes the API server know what the charts have for the Prometheus operator.
func createPrometheusCRDs(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(charts.Root(), "bin", "crds", "prometheus", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs of the Prometheus operator: run 'make bin/crds/modules.txt' (%v)", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(ctx, crd); err != nil {
			t.Fatal(err)
		}
	}
}

// checkDenied looks in the audit logs for what the operator was not allowed to do.
func checkDenied(t *testing.T, s *stack.Stack) {
	t.Helper()
	const agent = "karpenter-capi"
	logs := []string{"audit.log"}
	if s.Separate() {
		logs = append(logs, stack.ManagementPrefix+"audit.log")
	}
	for _, name := range logs {
		entries, _, err := audit.Log{Path: filepath.Join(s.LogDir(), name)}.Since(0)
		if err != nil {
			t.Fatal(err)
		}
		asked := slices.DeleteFunc(entries, func(e audit.Entry) bool { return !e.By(agent) })
		for i := range asked {
			if code := asked[i].ResponseStatus.Code; code == http.StatusUnauthorized || code == http.StatusForbidden {
				t.Errorf("%s: denied: %s", name, &asked[i])
			}
		}
		writes := audit.Count(audit.WritesBy(agent, asked))
		if len(writes) == 0 {
			t.Errorf("%s has no write of the operator: nothing was tested", name)
		}
		t.Logf("%s: %d requests of the operator; writes: %v", name, len(asked), writes)
	}
}
