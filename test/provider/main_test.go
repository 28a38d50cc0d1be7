// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/rights"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stacktest"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

//go:embed testdata/*.yaml
var testdata embed.FS

// How often conditions are checked, and how long they can take: Cluster API Provider vSphere tries a task that has failed again
// after a minute.
const (
	poll    = 500 * time.Millisecond
	timeout = 4 * time.Minute
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// nothingDenied checks that no request of a stack's operator was denied.
func nothingDenied(t *testing.T, s *stack.Stack) {
	t.Helper()
	stacktest.AddUsage(t, s, &rights.Usage{})
}

// objectsIn returns the objects of a file in testdata.
func objectsIn(g *WithT, file string) []client.Object {
	data, err := testdata.ReadFile("testdata/" + file)
	g.Expect(err).NotTo(HaveOccurred())
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var objects []client.Object
	for {
		object := &unstructured.Unstructured{}
		if err = decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		}
		g.Expect(err).NotTo(HaveOccurred(), file)
		objects = append(objects, object)
	}
}

// createSample creates the objects of a sample, without changes.
func createSample(ctx context.Context, t *testing.T, s *stack.Stack, sample string) {
	t.Helper()
	for _, file := range []string{"machines.yaml", "instancetypecatalog.yaml", "karpentermachinetemplate.yaml", "nodepool.yaml"} {
		data, err := os.ReadFile(filepath.Join(charts.Root(), "config", "samples", sample, file))
		if err == nil {
			err = s.Create(ctx, data)
		}
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", file, err))
		}
	}
}

// eventually is Eventually with this package's timeout.
func eventually(ctx context.Context, g *WithT, check func(g Gomega)) {
	g.Eventually(ctx, check).WithTimeout(timeout).WithPolling(poll).Should(Succeed())
}
