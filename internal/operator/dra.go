// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"
)

// draResources are what Karpenter watches if it plans Nodes for ResourceClaims.
var draResources = []string{"deviceclasses", "resourceclaims", "resourceslices"}

// ignoreUnserved lets Karpenter ignore the ResourceClaims of Pods if the API server of the workload cluster does not serve their API,
// because its controllers would wait for these kinds forever. Kubernetes serves it from 1.34 on.
func ignoreUnserved(ctx context.Context, workload *rest.Config, options *coreoptions.Options) error {
	if options.IgnoreDRARequests {
		return nil
	}
	client, err := kubernetes.NewForConfig(limited(workload))
	if err != nil {
		return err
	}
	version := resourcev1.SchemeGroupVersion.String()
	list, err := client.Discovery().ServerResourcesForGroupVersion(version)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the resources of %s: %w", version, err)
	}
	var served []string
	if err == nil {
		served = lo.Map(list.APIResources, func(r metav1.APIResource, _ int) string { return r.Name })
	}
	if !lo.Every(served, draResources) {
		options.IgnoreDRARequests = true
		log.FromContext(ctx).Info("Karpenter ignores Pods with ResourceClaims, because the API server of the workload cluster does not serve their API. Kubernetes 1.34 and later do; restart the operator after an upgrade", "version", version)
	}
	return nil
}
