// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A hundred Machines whose bootstrap and infrastructure objects the operator has no right to list do not cost
// a wait each. What is known of the Machines still counts.
func TestMachinesWhoseObjectsCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfig"}
		instance := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "AWSMachine"}
		var crds []client.Object
		for _, name := range []string{"kubeadmconfigs." + config.Group, "awsmachines." + instance.Group} {
			crd := reference.CRD()
			crd.SetName(name)
			crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
			crds = append(crds, crd)
		}
		known := scheme.Scheme
		if err := metav1.AddMetaToScheme(known); err != nil {
			t.Fatal(err)
		}
		unlisted := map[schema.GroupVersionKind]toolscache.SharedIndexInformer{config: controllertest.NewFakeInformer(), instance: controllertest.NewFakeInformer()}
		onDemand := clients.NewOnDemand(&informertest.FakeInformers{InformersByGVK: unlisted})
		reads := 0
		both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(known).WithObjects(crds...).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if _, ofProvider := object.(*unstructured.Unstructured); ofProvider {
					reads++
					return onDemand.Get(ctx, key, object, options...)
				}
				return c.Get(ctx, key, object, options...)
			},
		}).Build()}
		clusters := &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
		began := time.Now()
		for i := range 100 {
			machine := fixture.WithCondition(fixture.Machine(time.Hour), clusterv1.MachineInfrastructureReadyCondition, metav1.ConditionFalse, "NotReady", "waiting", fixture.Noon)
			machine.Name = fmt.Sprint("m", i)
			machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: config.Group, Kind: config.Kind, Name: machine.Name}
			machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: instance.Group, Kind: instance.Kind, Name: machine.Name}
			state := snapshot.ReadMachine(t.Context(), clusters, settings.Settings{}, fixture.Claim(time.Hour), machine, fixture.Noon)
			if read := state.Machines[0]; read.Failure != (failure.Failure{}) || read.Stall != (planner.Stall{}) {
				t.Fatalf("got failure %v and stall %v from objects that cannot be read", read.Failure, read.Stall)
			}
		}
		if reads != 300 {
			t.Errorf("%d reads, want 3 for each Machine", reads)
		}
		if took := time.Since(began); took > 2*clients.Patience+time.Second {
			t.Errorf("the reads took %s, want one wait of %s for each of two kinds", took, clients.Patience)
		}
	})
}
