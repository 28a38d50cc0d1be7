// SPDX-License-Identifier: Apache-2.0

// Command simulated-infrastructure is a Cluster API infrastructure provider whose machines are Nodes without an
// instance. It runs on the machine of a local control plane; see the README in this folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"

	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
)

// Client limits: one machine takes about seven requests, and thousands are created at a time.
const (
	clientQPS   = 200
	clientBurst = 400
)

type flags struct {
	kubeconfig         string
	workloadKubeconfig string
	clusterName        string
	healthAddr         string
	metricsAddr        string
	concurrency        int
}

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "simulated-infrastructure:", err)
		os.Exit(1)
	}
}

func parseFlags(args []string, logOptions *zap.Options) (*flags, error) {
	f := &flags{}
	set := flag.NewFlagSet("simulated-infrastructure", flag.ContinueOnError)
	set.StringVar(&f.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of the management cluster; default: KUBECONFIG of the environment")
	set.StringVar(&f.workloadKubeconfig, "workload-kubeconfig", "", "kubeconfig of the workload cluster; default: that of the management cluster")
	set.StringVar(&f.clusterName, "cluster-name", "", "name of the only Cluster whose objects the provider reconciles; default: all")
	set.StringVar(&f.healthAddr, "health-addr", "127.0.0.1:9441", "address of /healthz and /readyz; 0 disables it")
	set.StringVar(&f.metricsAddr, "metrics-addr", "0", "address of /metrics; 0 disables it")
	set.IntVar(&f.concurrency, "concurrency", 50, "number of objects of a kind that are reconciled at a time")
	logOptions.BindFlags(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if f.kubeconfig == "" {
		return nil, errors.New("no management cluster: set --kubeconfig or KUBECONFIG")
	}
	if f.concurrency < 1 {
		return nil, fmt.Errorf("--concurrency must be at least 1, not %d", f.concurrency)
	}
	if f.workloadKubeconfig == "" {
		f.workloadKubeconfig = f.kubeconfig
	}
	return f, errors.Join(checkLocal("health-addr", f.healthAddr), checkLocal("metrics-addr", f.metricsAddr))
}

// checkLocal rejects an address that other machines can reach, because the provider has no authentication.
func checkLocal(name, addr string) error {
	if addr == "0" {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--%s must be a loopback address such as 127.0.0.1:0, not %q", name, addr)
	}
	return nil
}

func run(ctx context.Context, args []string) error {
	logOptions := zap.Options{}
	f, err := parseFlags(args, &logOptions)
	if err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logOptions)))

	if err := controller.AddToScheme(clientgoscheme.Scheme); err != nil {
		return err
	}
	management, err := restConfig(f.kubeconfig)
	if err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	mgr, err := ctrl.NewManager(management, ctrl.Options{
		Scheme:                 clientgoscheme.Scheme,
		HealthProbeBindAddress: f.healthAddr,
		Cache:                  cacheOf(f.clusterName),
		Metrics:                metricsserver.Options{BindAddress: f.metricsAddr},
	})
	if err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	workloadConfig, err := restConfig(f.workloadKubeconfig)
	if err != nil {
		return fmt.Errorf("workload cluster: %w", err)
	}
	// A client without a cache: the provider reads each Node only twice, and a cache would watch all of them.
	workload, err := client.New(workloadConfig, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return fmt.Errorf("workload cluster: %w", err)
	}
	if err := rest.LoadTLSFiles(workloadConfig); err != nil {
		return fmt.Errorf("workload cluster: %w", err)
	}
	if err := errors.Join(
		controller.SetupWithManager(mgr, workload, controller.Options{Concurrency: f.concurrency, WorkloadCA: workloadConfig.CAData}),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("ping", healthz.Ping),
	); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// cacheOf returns the options of a cache with the objects of one Cluster; of all if the name is empty.
func cacheOf(cluster string) cache.Options {
	if cluster == "" {
		return cache.Options{}
	}
	return cache.Options{DefaultLabelSelector: labels.SelectorFromSet(labels.Set{clusterv1.ClusterNameLabel: cluster})}
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	return rest.AddUserAgent(config, "simulated-infrastructure"), nil
}
