// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strconv"

	"github.com/awslabs/operatorpkg/serrors"
	"github.com/go-logr/zapr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/events"
	core "sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/state/prediction"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/interruption"
)

// Name is the name of this operator, as user agent and in logs.
const Name = "karpenter-capi"

// Operator has the manager, and the dependencies of its controllers.
type Operator struct {
	manager.Manager
	Clusters          *Clusters
	EventRecorder     events.Recorder
	Clock             clock.Clock
	InstanceTypeStore *nodeoverlay.InstanceTypeStore
	PredictionStore   *prediction.Store
	// InterruptionSignals announce that the instance of a Node ends.
	InterruptionSignals interruption.Signals
	// NodeName is the name of the Node on which the operator runs; empty if that is unknown.
	NodeName string
}

// New returns the operator for a workload cluster, and the context for its controllers.
// management can be the same configuration as workload.
func New(ctx context.Context, workload, management *rest.Config, options *Options) (context.Context, *Operator, error) {
	ctx = options.Core.ToContext(ctx)
	logger := serrors.NewLogger(zapr.NewLogger(logging.NewLogger(ctx, Name)))
	log.SetLogger(logger)
	klog.SetLogger(logger)
	ctx = log.IntoContext(ctx, logger)

	toWorkload := connection.New(connection.Workload, workload.Host, clock.RealClock{}, connection.Wall{})
	toManagement := connection.New(connection.Management, management.Host, clock.RealClock{}, connection.Wall{})
	workload, management = configure(workload, toWorkload, options), configure(management, toManagement, options)
	mgr, err := newManager(ctx, workload, options)
	if err != nil {
		return nil, nil, err
	}
	reader, err := client.New(management, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the management cluster %s: %w", management.Host, err)
	}
	served, err := FindCluster(ctx, reader, options.ClusterNamespace, options.ClusterName)
	if err != nil {
		return nil, nil, err
	}
	clusters := &Clusters{Cluster: served, Workload: mgr, ToWorkload: toWorkload, ToManagement: toManagement}
	if clusters.Management, err = newManagement(ctx, management, served); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(
		mgr.Add(clusters.Management),
		follow(mgr, clusters.Workload, toWorkload),
		follow(mgr, clusters.Management, toManagement),
		mgr.AddReadyzCheck("workload-cluster", filled(clusters.Workload)),
		mgr.AddReadyzCheck("management-cluster", filled(clusters.Management)),
	); err != nil {
		return nil, nil, err
	}
	logger.Info("serving", "Cluster", served, "workload", workload.Host, "management", management.Host, "version", core.Version)
	return ctx, &Operator{
		Manager:           mgr,
		Clusters:          clusters,
		EventRecorder:     events.NewRecorder(mgr.GetEventRecorderFor(core.AppName)), //nolint:staticcheck // Karpenter's recorder takes this kind only.
		Clock:             clock.RealClock{},
		InstanceTypeStore: nodeoverlay.NewInstanceTypeStore(),
		PredictionStore:   prediction.NewStore(),

		InterruptionSignals: options.InterruptionSignals,
		NodeName:            options.NodeName,
	}, nil
}

// follow tells a connection when the cache of its cluster is filled, and when this process leads.
func follow(mgr manager.Manager, cluster cluster.Cluster, connection *connection.Connection) error {
	connection.LeadsFrom(mgr.Elected())
	return mgr.Add(whileStandby(func(ctx context.Context) error {
		if cluster.GetCache().WaitForCacheSync(ctx) {
			connection.Filled()
		}
		return nil
	}))
}

// whileStandby is a runnable that also runs in a process that does not lead.
type whileStandby func(context.Context) error

// Start runs it.
func (f whileStandby) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection returns false.
func (whileStandby) NeedLeaderElection() bool { return false }

// configure returns a copy of a client configuration with this operator's rate limits and
// user agent, and with a transport that tells a connection what happens to requests.
func configure(config *rest.Config, connection *connection.Connection, options *Options) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(connection.Transport)
	config.QPS, config.Burst = float32(options.Core.KubeClientQPS), options.Core.KubeClientBurst
	config.UserAgent = Name + "/" + core.Version
	return config
}

// newManager returns a manager for Karpenter's controllers (karpenter:
// pkg/operator/operator.go).
func newManager(ctx context.Context, config *rest.Config, options *Options) (manager.Manager, error) {
	// Leader election has its own rate limit, so that the operator does not lose the lease
	// in a burst of requests.
	leaderConfig := rest.CopyConfig(config)
	leaderConfig.QPS, leaderConfig.Burst = 0, 0
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme.Scheme,
		Logger:                        logging.IgnoreDebugEvents(log.FromContext(ctx)),
		LeaderElection:                !options.Core.DisableLeaderElection,
		LeaderElectionID:              options.Core.LeaderElectionName,
		LeaderElectionNamespace:       options.Core.LeaderElectionNamespace,
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionConfig:          leaderConfig,
		Metrics:                       server.Options{BindAddress: address(options, options.Core.MetricsPort), ExtraHandlers: profiles(options)},
		HealthProbeBindAddress:        address(options, options.Core.HealthProbePort),
		// When the context of Start ends, the manager stops its runnables in order. If this context ended then, too, caches
		// that are not filled yet would never be filled, and the manager would wait for them (controller-runtime:
		// pkg/manager/runnable_group.go).
		BaseContext: func() context.Context { return context.WithoutCancel(ctx) },
		Cache: cache.Options{
			// Neither core nor this operator reads the managed fields of objects in the workload cluster.
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&coordinationv1.Lease{}: {Field: fields.OneTermEqualSelector("metadata.namespace", "kube-node-lease")},
			},
		},
		Controller: ctrlconfig.Controller{
			EnableWarmup: new(!options.Core.DisableLeaderElection && !options.Core.DisableControllerWarmup),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the workload cluster %s: %w", config.Host, err)
	}
	if err := index(ctx, mgr.GetFieldIndexer(), slices.Concat(coreFields, workloadFields)...); err != nil {
		return nil, fmt.Errorf("workload cluster %s: %w", config.Host, err)
	}
	return mgr, mgr.AddHealthzCheck("healthz", healthz.Ping)
}

// filled returns a check that the cache of a cluster is filled.
func filled(cluster cluster.Cluster) healthz.Checker {
	return func(request *http.Request) error {
		if !cluster.GetCache().WaitForCacheSync(request.Context()) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	}
}

// address returns the address of an endpoint. Port 0 turns it off.
func address(options *Options, port int) string {
	if port == 0 {
		return "0"
	}
	return net.JoinHostPort(options.BindAddress, strconv.Itoa(port))
}

// profiles returns the handlers that --enable-profiling adds to the metrics endpoint.
func profiles(options *Options) map[string]http.Handler {
	if !options.Core.EnableProfiling {
		return nil
	}
	handlers := map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, name := range []string{"allocs", "heap", "block", "goroutine", "threadcreate"} {
		handlers["/debug/pprof/"+name] = pprof.Handler(name)
	}
	return handlers
}
