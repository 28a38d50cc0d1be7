// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/karpenter/pkg/controllers/state"

	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	infrastructure "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
)

// environment is a control plane with all controllers.
type environment struct {
	// cluster is the Cluster that the operator serves. Its objects are in the control
	// plane of management, which is this one unless the two are separate.
	cluster    types.NamespacedName
	management *environment

	control *envtest.Environment
	config  *rest.Config
	running *sync.WaitGroup
	// logs is the folder of the controllers' logs; it is kept if the suite fails.
	logs string

	// client reads and writes without a cache.
	client client.Client
	// crds is such a client for CustomResourceDefinitions.
	crds client.Client
	// watches is a cache for tests that must not miss an event.
	watches cache.Cache
	// queues has the work of all controllers of the control plane.
	queues *queues
	// clusterAPI and provider read from the caches of Cluster API and of the infrastructure provider.
	clusterAPI, provider client.Reader
	// clusterCache has Cluster API's caches of workload clusters.
	clusterCache clustercache.ClusterCache

	// history is the history of the control plane's etcd.
	history *history.Recorder

	operator *operator.Operator
	clock    *shiftedClock
	// state is Karpenter core's view of the workload cluster.
	state *state.Cluster
	// requests are the requests of the operator.
	requests *requestLog
	// toWorkload and toManagement are the operator's links to both API servers.
	toWorkload, toManagement *network
}

// newEnvironment returns an environment for a Cluster in the environment management; in the new
// environment if that is nil.
func newEnvironment(cluster types.NamespacedName, management *environment) *environment {
	e := &environment{
		cluster: cluster, management: management, running: &sync.WaitGroup{}, toWorkload: newNetwork(), toManagement: newNetwork(),
		queues: &queues{works: map[work]*progress{}},
	}
	if management == nil {
		e.management = e
	}
	return e
}

// startControlPlane starts etcd and kube-apiserver with all CRDs.
func (e *environment) startControlPlane(ctx context.Context) {
	GinkgoHelper()
	Expect(infrastructure.AddToScheme(scheme.Scheme)).To(Succeed())
	var err error
	e.logs, err = os.MkdirTemp("", "karpenter-capi-integration-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.keepOrRemoveLogs)
	ctrl.SetLogger(e.logger("others"))

	clusterAPI := moduleFolder("sigs.k8s.io/cluster-api")
	e.control = &envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{
		Scheme: scheme.Scheme,
		CRDs:   karpenterapis.CRDs,
		Paths: []string{
			filepath.Join("..", "..", "config", "crd", "bases"),
			filepath.Join("..", "harness", "infrastructure", "config", "crd"),
			filepath.Join(clusterAPI, "core", "config", "crd", "bases"),
			filepath.Join(clusterAPI, "bootstrap", "kubeadm", "config", "crd", "bases", "bootstrap.cluster.x-k8s.io_kubeadmconfigtemplates.yaml"),
		},
		ErrorIfPathMissing: true,
		// Several API servers start at the same time, beside compilers.
		MaxTime: time.Minute,
	}}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	e.control.ControlPlane.GetAPIServer().Path = e.endsWithParent(filepath.Join(assets, "kube-apiserver"))
	e.control.ControlPlane.Etcd = &envtest.Etcd{Path: e.endsWithParent(filepath.Join(assets, "etcd"))}
	// Nothing reads the data after a crash of the machine, and each write would wait for the disk.
	e.control.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	// Also if it does not start completely: it runs when a CRD is rejected.
	DeferCleanup(func() error { return e.control.Stop() })
	e.config, err = e.control.Start()
	Expect(err).NotTo(HaveOccurred())
	e.config.QPS = -1 // no limit: specs read often
	e.client, err = client.New(e.config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	crdScheme := runtime.NewScheme()
	Expect(apiextensionsv1.AddToScheme(crdScheme)).To(Succeed())
	e.crds, err = client.New(e.config, client.Options{Scheme: crdScheme})
	Expect(err).NotTo(HaveOccurred())
	e.watches, err = cache.New(e.config, cache.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	e.running.Go(func() {
		defer GinkgoRecover()
		Expect(e.watches.Start(ctx)).To(Succeed())
	})
}

// start runs a manager until the suite ends, and waits until its caches are filled.
func (e *environment) start(ctx context.Context, mgr ctrl.Manager) {
	GinkgoHelper()
	e.running.Go(func() {
		defer GinkgoRecover()
		Expect(mgr.Start(ctx)).To(Succeed())
	})
	Eventually(mgr.Elected()).Should(BeClosed())
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
}

// logger returns a logger with its own file.
func (e *environment) logger(name string) logr.Logger {
	GinkgoHelper()
	file, err := os.Create(e.logFile(name))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(file.Close)
	return zap.New(zap.WriteTo(file), zap.UseDevMode(true))
}

func (e *environment) logFile(name string) string {
	return filepath.Join(e.logs, name+".log")
}

func (e *environment) keepOrRemoveLogs() error {
	if CurrentSpecReport().Failed() || suiteFailed {
		AddReportEntry("the controllers' logs", e.logs)
		return nil
	}
	return os.RemoveAll(e.logs)
}

// suiteFailed is set once a spec has failed.
var suiteFailed bool

var _ = ReportAfterEach(func(report SpecReport) {
	suiteFailed = suiteFailed || report.Failed()
})

// moduleFolder returns the folder of the source of a Go module.
func moduleFolder(module string) string {
	GinkgoHelper()
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	Expect(err).NotTo(HaveOccurred(), "finding the CRDs of %s", module)
	return strings.TrimSpace(string(output))
}
