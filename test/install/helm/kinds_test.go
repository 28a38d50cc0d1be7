// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

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
