// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// startNeighbour starts a second operator until the specs of its container have ended. It serves
// another Cluster in the namespace of the served one, whose workload cluster is a separate control
// plane.
func startNeighbour() *environment {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	e := newEnvironment(types.NamespacedName{Namespace: served.Namespace, Name: "neighbour"}, env)
	e.startControlPlane(ctx)
	DeferCleanup(func() {
		cancel()
		e.running.Wait()
	})
	e.grant(ctx)
	e.createCluster(ctx)
	DeferCleanup(func(ctx SpecContext) {
		// Cluster API is connected to the workload cluster until then.
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster.Namespace, Name: e.cluster.Name}}
		env.delete(ctx, cluster)
		env.waitGone(ctx, cluster)
		Expect(e.requests.since(0, func(r request) bool { return r.forbidden })).To(BeEmpty(), "forbidden requests of the neighbour")
	})
	// Metrics and names of controllers are global, and the first operator has them.
	registry := metrics.Registry
	metrics.Registry = prometheus.NewRegistry()
	defer func() { metrics.Registry = registry }()
	e.startOperator(ctx)
	return e
}

// second is a manager whose controllers can have the names of those of another manager.
type second struct{ manager.Manager }

// GetControllerOptions implements manager.Manager.
func (s second) GetControllerOptions() ctrlconfig.Controller {
	options := s.Manager.GetControllerOptions()
	options.SkipNameValidation = new(true)
	return options
}

// objectsOf returns the objects of a Cluster that operators and Cluster API have created for
// claims, as a set of resources with names.
func (e *environment) objectsOf(ctx context.Context, cluster types.NamespacedName) sets.Set[string] {
	GinkgoHelper()
	found := sets.New[string]()
	for _, gvk := range []schema.GroupVersionKind{
		clusterv1.GroupVersion.WithKind("MachineDeployment"), clusterv1.GroupVersion.WithKind("MachinePool"),
		clusterv1.GroupVersion.WithKind("MachineSet"), clusterv1.GroupVersion.WithKind("Machine"),
		infrav1.GroupVersion.WithKind("SimulatedMachineTemplate"), infrav1.GroupVersion.WithKind("SimulatedMachinePool"),
		infrav1.GroupVersion.WithKind("SimulatedMachine"),
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		Expect(e.client.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name})).To(Succeed())
		for i := range list.Items {
			found.Insert(path.Join(strings.ToLower(gvk.Kind)+"s", list.Items[i].GetName()))
		}
	}
	return found
}

// written returns what an operator has written, or tried to, in the namespace of the Clusters since
// a mark, in the form of objectsOf.
func written(requests *requestLog, mark int) sets.Set[string] {
	GinkgoHelper()
	found := sets.New[string]()
	for _, r := range requests.since(mark, request.write) {
		_, below, within := strings.Cut(r.path, "/namespaces/"+served.Namespace+"/")
		if !within {
			continue
		}
		parts := strings.Split(below, "/")
		if r.method == http.MethodPost {
			object := &metav1.PartialObjectMetadata{}
			Expect(json.Unmarshal([]byte(r.body), object)).To(Succeed())
			parts = append(parts, object.Name)
		}
		found.Insert(path.Join(parts[:2]...))
	}
	return found
}
