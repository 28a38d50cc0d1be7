// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	infrastructure "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
)

// served is the Cluster of the operator.
var served = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "served"}

// apiServer is the API server of both clusters, and objects reads and writes there without a cache.
var (
	apiServer *rest.Config
	objects   client.Client
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	env := &envtest.Environment{}
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "stopping the API server: %v\n", err)
		}
	}()
	if err := start(env); err != nil {
		fmt.Fprintf(os.Stderr, "starting the API server (make test sets KUBEBUILDER_ASSETS): %v\n", err)
		return 1
	}
	return m.Run()
}

// start starts an API server with all CustomResourceDefinitions, and creates the served Cluster.
func start(env *envtest.Environment) error {
	if err := infrastructure.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		return fmt.Errorf("finding the CustomResourceDefinitions of Cluster API: %w", err)
	}
	env.CRDInstallOptions = envtest.CRDInstallOptions{
		Scheme: scheme.Scheme, CRDs: karpenterapis.CRDs, ErrorIfPathMissing: true, MaxTime: time.Minute,
		Paths: []string{
			filepath.Join("..", "..", "..", "config", "crd", "bases"),
			filepath.Join("..", "..", "harness", "infrastructure", "config", "crd"),
			filepath.Join(strings.TrimSpace(string(output)), "core", "config", "crd", "bases"),
		},
	}
	env.ControlPlane.Etcd = &envtest.Etcd{}
	env.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	if apiServer, err = env.Start(); err != nil {
		return err
	}
	apiServer.QPS = -1 // no limit, because thousands of objects are created
	if objects, err = client.New(apiServer, client.Options{Scheme: scheme.Scheme}); err != nil {
		return err
	}
	return objects.Create(context.Background(), &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "SimulatedCluster", Name: served.Name,
		}},
	})
}

// newOperator returns the operator of the served Cluster, without controllers.
func newOperator(ctx context.Context, t *testing.T) (context.Context, *operator.Operator) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "operator.log")
	options, err := operator.ParseOptions("--cluster-name="+served.Name, "--cluster-namespace="+served.Namespace,
		"--metrics-port=0", "--health-probe-port=0", "--disable-leader-election=true",
		"--log-output-paths="+log, "--log-error-output-paths="+log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, op, err := operator.New(ctx, apiServer, rest.CopyConfig(apiServer), options)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, op
}
