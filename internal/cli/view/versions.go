// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions are the versions of what runs in both clusters. Those that cannot be read are empty.
type Versions struct {
	// Workload and Management are the versions of Kubernetes.
	Workload   string `json:"workload,omitempty"`
	Management string `json:"management,omitempty"`
	// Operator are the images of the operator's Pods.
	Operator []string `json:"operator,omitempty"`
	// Providers are the images of Cluster API and of the providers, by their names in clusterctl.
	Providers map[string][]string `json:"providers,omitempty"`
}

// ClusterAPI is the name of Cluster API itself among the providers.
const ClusterAPI = "cluster-api"

// Versions reads the versions, and returns an error for each that cannot be read.
func (v *View) Versions(ctx context.Context) (Versions, []error) {
	found := Versions{}
	var errs []error
	for workload, version := range map[bool]*string{true: &found.Workload, false: &found.Management} {
		var err error
		if *version, err = kubernetesVersion(v.clusterOf(workload).GetConfig()); err != nil {
			errs = append(errs, fmt.Errorf("%s: version of Kubernetes: %w", nameOf(workload), err))
		}
	}
	operator, err := v.Operator(ctx)
	if err != nil {
		errs = append(errs, err)
	}
	if operator != nil {
		found.Operator = distinct(lo.Map(operator.Pods, func(pod corev1.Pod, _ int) string { return Container(&pod).Image }))
	}
	deployments := &appsv1.DeploymentList{}
	if err := v.clusters.Management.GetAPIReader().List(ctx, deployments, client.HasLabels{clusterv1.ProviderNameLabel}); err != nil {
		errs = append(errs, fmt.Errorf("management cluster: listing the Deployments of Cluster API: %w", err))
	}
	byProvider := lo.GroupBy(deployments.Items, func(d appsv1.Deployment) string { return d.Labels[clusterv1.ProviderNameLabel] })
	found.Providers = lo.MapValues(byProvider, func(all []appsv1.Deployment, _ string) []string {
		return distinct(lo.Map(all, func(d appsv1.Deployment, _ int) string { return managerImage(d.Spec.Template.Spec.Containers) }))
	})
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return found, errs
}

// managerImage returns the image of the container that clusterctl expects the controllers in, or else of the first.
func managerImage(containers []corev1.Container) string {
	manager, found := lo.Find(containers, func(c corev1.Container) bool { return c.Name == "manager" })
	if !found {
		manager = lo.FirstOrEmpty(containers)
	}
	return manager.Image
}

// distinct returns texts in their order, each once.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// kubernetesVersion reads the version of an API server.
func kubernetesVersion(config *rest.Config) (string, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 10 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return "", err
	}
	return version.GitVersion, nil
}
