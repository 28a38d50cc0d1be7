// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/awslabs/operatorpkg/serrors"
	"github.com/go-logr/zapr"
	"github.com/samber/lo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
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
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/events"
	core "sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/state/prediction"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/inventory"
	"github.com/karpenter-capi/karpenter-capi/internal/lanes"
	"github.com/karpenter-capi/karpenter-capi/internal/signals"
)

// Operator has the manager, and the dependencies of its controllers.
type Operator struct {
	manager.Manager
	Clusters          *clients.Clusters
	Inventories       *inventory.Watches
	EventRecorder     events.Recorder
	Clock             clock.Clock
	InstanceTypeStore *nodeoverlay.InstanceTypeStore
	PredictionStore   *prediction.Store
	// InterruptionSignals announce that the instance of a Node ends.
	InterruptionSignals signals.Signals
	// OfferingPriceMetrics serves a metric with the price of each offering.
	OfferingPriceMetrics bool
	// NodeName is the name of the Node on which the operator runs; empty if that is unknown.
	NodeName string
}

// New returns the operator for a workload cluster, and the context for its controllers.
// management can be the same configuration as workload.
func New(ctx context.Context, workload, management *rest.Config, options *Options) (context.Context, *Operator, error) {
	ctx = withLogger(options.Core.ToContext(ctx))
	if err := errors.Join(clients.CheckServer("workload", workload), clients.CheckServer("management", management)); err != nil {
		return nil, nil, err
	}
	toWorkload := connection.New(connection.Workload, workload.Host, clock.RealClock{}, connection.Wall{})
	toManagement := connection.New(connection.Management, management.Host, clock.RealClock{}, connection.Wall{})
	ofWorkload := lanes.New()
	ofManagement := lo.Ternary(management.Host == workload.Host, ofWorkload, lanes.New())
	if err := ignoreUnserved(ctx, workload, &options.Core); err != nil {
		return nil, nil, err
	}
	workload, management = configure(workload, toWorkload, ofWorkload, options), configure(management, toManagement, ofManagement, options)
	home := workload
	if options.WorkloadKubeconfig != "" {
		home = management
	}
	mgr, err := newManager(ctx, workload, home, options)
	if err != nil {
		return nil, nil, err
	}
	if !options.AllEvents {
		mgr = quietManager{mgr}
	}
	reader, err := client.New(management, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the management cluster %s: %w", clients.Server(management), err)
	}
	served, err := clients.FindCluster(ctx, reader, options.ClusterNamespace, options.ClusterName)
	if err != nil {
		return nil, nil, err
	}
	clusters := &clients.Clusters{Cluster: served, Workload: mgr, Allowed: options.Allowed, ToWorkload: toWorkload, ToManagement: toManagement}
	if clusters.Management, err = clients.NewManagement(ctx, management, served, options.Allowed); err != nil {
		return nil, nil, err
	}
	inventories, err := inventory.NewWatches(ctx, management, clusters.Management.GetHTTPClient(), clusters.Management.GetRESTMapper(), served.Namespace)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(
		mgr.Add(clusters.Management),
		follow(mgr, clusters.Workload, toWorkload, func(ctx context.Context) error {
			return clusters.Workload.GetAPIReader().List(ctx, &karpv1.NodePoolList{}, client.Limit(1))
		}),
		follow(mgr, clusters.Management, toManagement, func(ctx context.Context) error {
			_, err := clusters.Live(ctx)
			return err
		}),
		mgr.AddReadyzCheck("workload-cluster", filled(clusters.Workload)),
		mgr.AddReadyzCheck("management-cluster", filled(clusters.Management)),
	); err != nil {
		return nil, nil, err
	}
	log.FromContext(ctx).Info("serving", "Cluster", served, "workload", clients.Server(workload), "management", clients.Server(management), "version", core.Version)
	return ctx, &Operator{
		Manager:           mgr,
		Clusters:          clusters,
		Inventories:       inventories,
		EventRecorder:     events.NewRecorder(mgr.GetEventRecorderFor(core.AppName)), //nolint:staticcheck // Karpenter's recorder takes this kind only.
		Clock:             clock.RealClock{},
		InstanceTypeStore: nodeoverlay.NewInstanceTypeStore(),
		PredictionStore:   prediction.NewStore(),

		InterruptionSignals:  options.InterruptionSignals,
		OfferingPriceMetrics: options.OfferingPriceMetrics,
		NodeName:             options.NodeName,
	}, nil
}

// withLogger makes the operator's logger that of its libraries, and adds it to a context.
func withLogger(ctx context.Context) context.Context {
	zapLogger := logging.NewLogger(ctx, build.Name).WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return lazyCore{core} }))
	logger := serrors.NewLogger(zapr.NewLogger(zapLogger))
	log.SetLogger(logger)
	klog.SetLogger(logger)
	return log.IntoContext(ctx, logger)
}

// lazyCore encodes the values of a logger when it first writes a message. Each reconcile makes several loggers, and few of them
// write one.
type lazyCore struct{ zapcore.Core }

// With returns a core that adds values to its messages.
func (c lazyCore) With(fields []zapcore.Field) zapcore.Core {
	return lazyCore{zapcore.NewLazyWith(c.Core, fields)}
}

// configure returns a copy of a client configuration with this operator's limits and user agent, and with a transport that
// tells a connection what happens to requests.
func configure(config *rest.Config, connection *connection.Connection, limit *lanes.Limit, options *Options) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(connection.Transport)
	config.Wrap(limit.Transport)
	config.QPS, config.Burst = float32(options.Core.KubeClientQPS), options.Core.KubeClientBurst
	config.UserAgent = build.Name + "/" + core.Version
	return config
}

// The lease is in the namespace in which the operator runs. A rule for create cannot name the object.
//
// +kubebuilder:rbac:roleName=leader-election-role,namespace=system,groups=coordination.k8s.io,resources=leases,resourceNames=karpenter-leader-election,verbs=get;update
// +kubebuilder:rbac:roleName=leader-election-role,namespace=system,groups=coordination.k8s.io,resources=leases,verbs=create

// newManager returns a manager for Karpenter's controllers in the workload cluster (karpenter:
// pkg/operator/operator.go). The lease is in home, the cluster in which the operator runs.
func newManager(ctx context.Context, config, home *rest.Config, options *Options) (manager.Manager, error) {
	// Leader election has its own rate limit, so that the operator does not lose the lease
	// in a burst of requests.
	leaderConfig := rest.CopyConfig(home)
	leaderConfig.QPS, leaderConfig.Burst = 0, 0
	byObject := map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}: {Field: fields.OneTermEqualSelector("metadata.namespace", "kube-node-lease")},
		&corev1.Node{}:          {Transform: clients.StripNodes()},
	}
	if !options.Core.IgnoreDRARequests {
		byObject[&resourcev1.ResourceSlice{}] = cache.ByObject{Transform: clients.StripSlices()}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme.Scheme,
		Logger:                        logging.IgnoreDebugEvents(log.FromContext(ctx)),
		LeaderElection:                !options.Core.DisableLeaderElection,
		LeaderElectionID:              options.Core.LeaderElectionName,
		LeaderElectionNamespace:       options.Core.LeaderElectionNamespace,
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionConfig:          leaderConfig,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
		Metrics:                       diagnostics(options, home),
		HealthProbeBindAddress:        address(options, options.Core.HealthProbePort),
		// When the context of Start ends, the manager stops its runnables in order. If this context ended then, too, caches
		// that are not filled yet would never be filled, and the manager would wait for them (controller-runtime:
		// pkg/manager/runnable_group.go).
		BaseContext: func() context.Context { return context.WithoutCancel(ctx) },
		Cache: cache.Options{
			// Neither core nor this operator reads the managed fields of objects in the workload cluster.
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         byObject,
		},
		Controller: ctrlconfig.Controller{
			EnableWarmup: new(!options.Core.DisableLeaderElection && !options.Core.DisableControllerWarmup),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the workload cluster %s: %w", clients.Server(config), err)
	}
	if err := clients.IndexWorkload(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, fmt.Errorf("workload cluster %s: %w", clients.Server(config), err)
	}
	if !options.Core.IgnoreDRARequests {
		if err := clients.IndexDevices(ctx, mgr.GetFieldIndexer()); err != nil {
			return nil, fmt.Errorf("workload cluster %s: %w", clients.Server(config), err)
		}
	}
	// Without this option, the lease is in the namespace of the Pod, which only controller-runtime knows. Such a process exits
	// when it cannot renew the lease.
	if !options.Core.DisableLeaderElection && options.Core.LeaderElectionNamespace != "" {
		key := types.NamespacedName{Namespace: options.Core.LeaderElectionNamespace, Name: options.Core.LeaderElectionName}
		if err := exitWithoutLease(mgr, leaderConfig, key); err != nil {
			return nil, err
		}
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
