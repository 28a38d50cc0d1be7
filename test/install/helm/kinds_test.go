// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/charts"
	"github.com/karpenter-capi/karpenter-capi/test/install"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// awaitServed waits until discovery in the API server contains the kinds of the chart, shortly after they are
// established.
func awaitServed(ctx context.Context, g *WithT, s *stack.Stack) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	client, err := discovery.NewDiscoveryClientForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	for _, version := range []string{"karpenter.cluster.x-k8s.io/v1alpha1", "karpenter.sh/v1"} {
		g.Eventually(ctx, func() error {
			_, err := client.ServerResourcesForGroupVersion(version)
			return err
		}).WithTimeout(time.Minute).WithPolling(install.Poll).Should(Succeed(), version)
	}
}

// createPrometheusCRDs creates the CRDs for the objects that the charts have for the Prometheus operator.
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
