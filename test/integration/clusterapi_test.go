// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	clusterreconciler "sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinepool"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	"sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/util/index"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	controlplanev1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/controlplane/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	infrastructure "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
)

const clusterAPIName = "cluster-api"

// served is the Cluster that the operator serves.
var served = types.NamespacedName{Namespace: "fleet", Name: "served"}

// startClusterAPI starts Cluster API's reconcilers, set up as in its main (core/main.go), and the
// simulated infrastructure provider; each has a manager. There are no webhooks.
func (e *environment) startClusterAPI(ctx context.Context) {
	GinkgoHelper()
	coreScheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme} {
		Expect(add(coreScheme)).To(Succeed())
	}
	config := rest.CopyConfig(e.config)
	config.UserAgent = clusterAPIName
	core, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  coreScheme,
		Logger:  e.logger(clusterAPIName),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   setup.ManagerCacheOptions(coreScheme, clusterAPIName, "", 10*time.Minute),
		Client:  setup.ManagerClientOptions(),
	})
	Expect(err).NotTo(HaveOccurred())
	e.clusterCache = setupClusterAPI(ctx, e.queues.manager(core))

	config = rest.CopyConfig(e.config)
	config.UserAgent = "simulated-infrastructure"
	provider, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme.Scheme,
		Logger:  e.logger("simulated-infrastructure"),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(infrastructure.SetupWithManager(e.queues.manager(provider), e.client, infrastructure.Options{NodeReady: true, Concurrency: 20})).To(Succeed())

	e.clusterAPI, e.provider = core.GetClient(), provider.GetClient()
	e.start(ctx, core)
	e.start(ctx, provider)
}

func setupClusterAPI(ctx context.Context, mgr ctrl.Manager) clustercache.ClusterCache {
	GinkgoHelper()
	concurrency := controller.Options{MaxConcurrentReconciles: 20}
	Expect(index.AddDefaultIndexes(ctx, mgr)).To(Succeed())
	secrets, err := setup.CreateSecretCachingClient(mgr)
	Expect(err).NotTo(HaveOccurred())
	cache, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: secrets,
		Cache:        setup.ClusterCacheCacheOptions(),
		Client:       setup.ClusterCacheClientOptions(clusterAPIName, 200, 400),
	}, concurrency)
	Expect(err).NotTo(HaveOccurred())
	// Its connection does not end with the manager, and kube-apiserver waits for it.
	DeferCleanup(cache.(interface{ Shutdown() }).Shutdown)
	Expect((&clusterreconciler.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: cache, RemoteConnectionGracePeriod: 50 * time.Second,
	}).SetupWithManager(ctx, mgr, concurrency)).To(Succeed())
	Expect((&machine.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: cache, RemoteConditionsGracePeriod: 5 * time.Minute,
	}).SetupWithManager(ctx, mgr, concurrency)).To(Succeed())
	Expect((&machineset.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: cache, PreflightChecks: sets.New(clusterv1.MachineSetPreflightCheckAll),
	}).SetupWithManager(ctx, mgr, concurrency)).To(Succeed())
	Expect((&machinedeployment.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(),
	}).SetupWithManager(ctx, mgr, concurrency)).To(Succeed())
	Expect((&machinepool.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: cache,
	}).SetupWithManager(ctx, mgr, concurrency)).To(Succeed())
	Expect((&machinehealthcheck.Reconciler{
		Client: mgr.GetClient(), ClusterCache: cache,
	}).SetupWithManager(ctx, mgr, concurrency)).To(Succeed())
	return cache
}

// createCluster creates the Cluster whose workload cluster is this control plane, and
// waits until Machines can be created in it. It can be called again after the Cluster was
// deleted.
func (e *environment) createCluster(ctx context.Context) {
	GinkgoHelper()
	user, err := e.control.AddUser(envtest.User{Name: clusterAPIName, Groups: []string{"system:masters"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := user.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	meta := metav1.ObjectMeta{
		Namespace: e.cluster.Namespace,
		Name:      e.cluster.Name,
		Labels:    map[string]string{clusterv1.ClusterNameLabel: e.cluster.Name},
	}
	secretMeta := *meta.DeepCopy()
	secretMeta.Name += "-kubeconfig"
	cluster := &clusterv1.Cluster{
		ObjectMeta: meta,
		Spec: clusterv1.ClusterSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "SimulatedCluster", Name: e.cluster.Name},
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "SimulatedControlPlane", Name: e.cluster.Name},
		},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.cluster.Namespace}}
	Expect(client.IgnoreAlreadyExists(e.management.client.Create(ctx, namespace))).To(Succeed())
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: secretMeta, Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig}},
		&infrav1.SimulatedCluster{ObjectMeta: meta},
		&controlplanev1.SimulatedControlPlane{ObjectMeta: meta},
		cluster,
	} {
		Expect(client.IgnoreAlreadyExists(e.management.client.Create(ctx, object))).To(Succeed())
	}
	Eventually(func(g Gomega) {
		g.Expect(e.management.client.Get(ctx, e.cluster, cluster)).To(Succeed())
		g.Expect(lo.FromPtr(cluster.Status.Initialization.InfrastructureProvisioned)).To(BeTrue())
		g.Expect(lo.FromPtr(cluster.Status.Initialization.ControlPlaneInitialized)).To(BeTrue())
	}).Should(Succeed())
}

// pauseCluster pauses or resumes the served Cluster. It does not pause while Machines of other
// specs are being deleted: Cluster API does not reconcile a Machine again for ten minutes if its
// instance disappears during the pause.
func (e *environment) pauseCluster(ctx context.Context, paused bool) {
	GinkgoHelper()
	if paused {
		Eventually(ctx, func() []string {
			machines := &clusterv1.MachineList{}
			Expect(e.client.List(ctx, machines)).To(Succeed())
			return lo.FilterMap(machines.Items, func(machine clusterv1.Machine, _ int) (string, bool) {
				return machine.Name, lifecycle.IsLeaving(&machine)
			})
		}).Should(BeEmpty(), "Machines that are being deleted")
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
	e.change(ctx, cluster, func() { cluster.Spec.Paused = lo.ToPtr(paused) })
}
