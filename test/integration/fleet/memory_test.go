// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karpenter-capi/karpenter-capi/internal/controller"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	bootstrapv1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/bootstrap/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

const (
	// machinesOfOthers is how many Machines other Clusters in the namespace have.
	machinesOfOthers = 5000
	// mayGrow is how much larger the live heap of the operator may be with them.
	mayGrow = 0.10
)

// The live heap of an operator does not depend on the Machines of other Clusters in its namespace. Each has an
// infrastructure machine, a bootstrap configuration and a Secret.
func TestMemory(t *testing.T) {
	base := newTemplate("base-of-all", "")
	if err := objects.Create(t.Context(), base); err != nil {
		t.Fatal(err)
	}
	// The first operator also fills what a process keeps, such as schemas and types.
	heapOf(t)
	without := heapOf(t)
	createOthers(t)
	with := heapOf(t)

	growth := float64(with)/float64(without) - 1
	t.Logf("the operator has %.1f MiB of live heap without other Clusters, and %.1f MiB with %d of their Machines (%+.1f %%, at most %+.0f %%)",
		mib(without), mib(with), machinesOfOthers, growth*100, mayGrow*100)
	if growth > mayGrow {
		t.Error("the operator keeps objects of other Clusters")
	}
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// heapOf starts an operator with all controllers, lets it read all kinds that it reads for Machines of its own
// Cluster, and returns the size of the live heap.
func heapOf(t *testing.T) uint64 {
	t.Helper()
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	// Metrics and names of controllers are global.
	metrics.Registry = prometheus.NewRegistry()
	operatorCtx, op := newOperator(ctx, t)
	management := op.Clusters.Management
	op.Manager = again{op.Manager}
	_, err := controller.Setup(operatorCtx, op)
	g.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- op.Start(operatorCtx) }()
	g.Eventually(op.Elected()).WithTimeout(patience).Should(BeClosed())
	g.Expect(management.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	for _, kind := range []schema.GroupVersionKind{
		infrav1.GroupVersion.WithKind("SimulatedMachineTemplate"), infrav1.GroupVersion.WithKind("SimulatedMachine"),
		bootstrapv1.GroupVersion.WithKind("SimulatedConfig"),
	} {
		ref := clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: "base-of-all"}
		_, err := reference.Get(ctx, management.GetClient(), ref, served.Namespace)
		g.Expect(err == nil).To(Equal(strings.HasSuffix(kind.Kind, "Template")), "%s: %v", kind.Kind, err)
	}
	runtime.GC()
	runtime.GC() // what finalizers and pools have released
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	runtime.KeepAlive(op)
	stop()
	g.Expect(<-ended).To(Succeed())
	return stats.HeapAlloc
}

// again is a manager whose controllers can have the names of those of an earlier manager.
type again struct{ manager.Manager }

// GetControllerOptions implements manager.Manager.
func (a again) GetControllerOptions() ctrlconfig.Controller {
	options := a.Manager.GetControllerOptions()
	options.SkipNameValidation = new(true)
	return options
}

// createOthers creates the Machines of ten other Clusters, with what belongs to them.
func createOthers(t *testing.T) {
	t.Helper()
	const writers = 32
	var next atomic.Int64
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for n := next.Add(1); n <= machinesOfOthers && !t.Failed(); n = next.Add(1) {
				for _, object := range ofMachine(int(n)) {
					if err := objects.Create(t.Context(), object); err != nil {
						t.Errorf("creating %T %s: %v", object, object.GetName(), err)
					}
				}
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// ofMachine returns the n-th Machine, and what belongs to it.
func ofMachine(n int) []client.Object {
	cluster, name := fmt.Sprintf("other-%d", n%10), fmt.Sprintf("machine-%d", n)
	of := metav1.ObjectMeta{Namespace: served.Namespace, Name: name, Labels: map[string]string{
		clusterv1.ClusterNameLabel: cluster, clusterv1.MachineDeploymentNameLabel: cluster + "-md", clusterv1.MachineSetNameLabel: cluster + "-ms",
	}}
	return []client.Object{
		&clusterv1.Machine{ObjectMeta: of, Spec: clusterv1.MachineSpec{
			ClusterName: cluster, Version: "v1.36.0", ProviderID: "sim://" + name,
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: &name},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "SimulatedMachine", Name: name},
		}},
		&infrav1.SimulatedMachine{ObjectMeta: of, Spec: infrav1.SimulatedMachineSpec{InstanceType: "small"}},
		&bootstrapv1.SimulatedConfig{ObjectMeta: of, Spec: bootstrapv1.SimulatedConfigSpec{DataSecretName: name}},
		&corev1.Secret{ObjectMeta: of, Data: map[string][]byte{"value": []byte(strings.Repeat("#cloud-config\n", 100))}},
	}
}
