// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/kubeconfig"
	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

// The flags of the kubeconfigs.
const (
	workloadFlag   = "--workload-kubeconfig"
	managementFlag = "--cluster-api-kubeconfig"
)

// reporter returns the Report for the kubeconfig of a cluster.
type reporter func(cluster, path string) kubeconfig.Report

// reportTo reports changes of kubeconfigs in the log and as a metric.
func reportTo(ctx context.Context) reporter {
	return func(cluster, path string) kubeconfig.Report {
		logger, gauge := log.FromContext(ctx).WithValues("cluster", cluster, "kubeconfig", path), metrics.KubeconfigInvalid.WithLabelValues(cluster)
		return func(err error) {
			if err != nil {
				gauge.Set(1)
				logger.Error(err, "the kubeconfig has changed and cannot be used")
				return
			}
			gauge.Set(0)
			logger.Info("using the new content of the kubeconfig")
		}
	}
}

// Configs returns the client configurations of both clusters. They follow their files.
func Configs(ctx context.Context, options *Options) (workload, management *rest.Config, err error) {
	found, err := load(options, reportTo(ctx))
	if err != nil {
		return nil, nil, err
	}
	return found.workload, found.management, nil
}

// load reads the kubeconfigs. The error has all that cannot be used, and the configurations of the others are returned.
func load(options *Options, report reporter) (*configs, error) {
	workload, err := loadOne(options.WorkloadKubeconfig, "workload", workloadFlag, report)
	if options.WorkloadKubeconfig == "" && options.ClusterAPIKubeconfig == "" {
		if err != nil {
			return &configs{}, err
		}
		return &configs{workload: workload, management: rest.CopyConfig(workload)}, nil
	}
	management, managementErr := loadOne(options.ClusterAPIKubeconfig, "management", managementFlag, report)
	return &configs{workload: workload, management: management}, errors.Join(err, managementErr)
}

// loadOne returns the client configuration of a cluster; without a path, that of the cluster in which the operator runs.
func loadOne(path, cluster, flag string, report reporter) (*rest.Config, error) {
	file := cmp.Or(path, ownKubeconfig())
	if file == "" {
		config, err := ctrl.GetConfig()
		if err != nil {
			return nil, fmt.Errorf("%s cluster: %s: %w", cluster, source(path, flag), err)
		}
		return config, nil
	}
	config, err := kubeconfig.Load(file, report(cluster, file))
	if err != nil {
		return nil, fmt.Errorf("%s cluster: %s: %w", cluster, source(path, flag), err)
	}
	expiries.follow(cluster, config)
	return config, nil
}

// ownKubeconfig returns the only file in KUBECONFIG; empty if there is none, or more than one, which client-go merges.
func ownKubeconfig() string {
	file := os.Getenv("KUBECONFIG")
	if strings.ContainsRune(file, filepath.ListSeparator) {
		return ""
	}
	return file
}

// source describes where the credentials for a cluster come from.
func source(path, flag string) string {
	if path != "" {
		return fmt.Sprintf("kubeconfig %s (%s)", path, flag)
	}
	if file := os.Getenv("KUBECONFIG"); file != "" {
		return fmt.Sprintf("kubeconfig %s (KUBECONFIG)", file)
	}
	return "ServiceAccount of the Pod"
}
