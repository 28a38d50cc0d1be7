// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	core "sigs.k8s.io/karpenter/pkg/operator"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/rights"
)

// preflightTimeout limits each request of the preflight.
const preflightTimeout = 10 * time.Second

// configs are the client configurations of both clusters.
type configs struct {
	workload, management *rest.Config
}

// access is how the operator reaches a cluster, and what it needs there.
type access struct {
	// cluster and source are texts: which cluster, and which file.
	cluster, source string
	config          *rest.Config
	rights          []rights.Right
	// kinds are resources that must exist, by their group and version.
	kinds map[string][]string
	// crds describes the installation of kinds.
	crds string
}

// preflight checks whether the operator can start: whether it can read its kubeconfigs, reach both clusters, has its rights
// there, and finds its Cluster. The error has all problems, with what to do.
func preflight(ctx context.Context, options *Options, report reporter) (*configs, error) {
	found, unusable := load(options, report)
	accesses, err := accessesOf(options, found)
	if err != nil {
		return nil, errors.Join(unusable, err)
	}
	problems := []error{unusable}
	for _, access := range accesses {
		if access.config == nil {
			continue // its kubeconfig is one of the unusable
		}
		if err := access.check(ctx); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", access.cluster, access.source, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	reader, err := client.New(limited(found.management), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", clients.Server(found.management), err)
	}
	_, err = clients.FindCluster(ctx, reader, options.ClusterNamespace, options.ClusterName)
	return found, err
}

// accessesOf returns how the operator reaches the clusters.
func accessesOf(options *Options, found *configs) ([]access, error) {
	ofWorkload, err := rights.Needed(rights.Workload, "")
	if err != nil {
		return nil, err
	}
	if !options.Core.IgnoreDRARequests {
		more, err := rights.ForDevices()
		if err != nil {
			return nil, err
		}
		ofWorkload = append(ofWorkload, more...)
	}
	ofManagement, err := rights.Needed(rights.Management, options.ClusterNamespace)
	if err != nil {
		return nil, err
	}
	ofCluster, err := rights.Needed(rights.ManagementCluster, "")
	if err != nil {
		return nil, err
	}
	return []access{
		{
			cluster: "workload cluster", source: source(options.WorkloadKubeconfig, workloadFlag), config: found.workload, rights: ofWorkload,
			kinds: map[string][]string{"karpenter.sh/v1": {"nodepools", "nodeclaims"}, "karpenter.cluster.x-k8s.io/v1alpha1": {"karpentermachinetemplates", "instancetypecatalogs"}},
			crds:  "install the chart karpenter-capi-crd in it",
		},
		{
			cluster: "management cluster", source: source(options.ClusterAPIKubeconfig, managementFlag), config: found.management, rights: append(ofManagement, ofCluster...),
			kinds: map[string][]string{"cluster.x-k8s.io/v1beta2": {"clusters", "machines", "machinesets", "machinedeployments"}},
			crds:  "install Cluster API v1.11 or later in it, or set the kubeconfig of the cluster that has it",
		},
	}, nil
}

// check returns what prevents the operator from using a cluster; nil if nothing does.
func (a *access) check(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(limited(a.config))
	if err != nil {
		return err
	}
	user, err := whoAmI(ctx, client)
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not accept the credentials: renew them in this file", clients.Server(a.config))
	case err != nil:
		return fmt.Errorf("the API server %s does not answer; check the server and the certificate authority in this file, and the network: %w", clients.Server(a.config), err)
	}
	missing, err := rights.Missing(ctx, a.rights, func(ctx context.Context, asked *authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asked}}
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	})
	if err != nil {
		return fmt.Errorf("asking for its rights: %w", err)
	}
	if len(missing) > 0 {
		lacks := lo.Map(rights.Describe(missing, user), func(lack rights.Lack, _ int) string { return lack.Message + ": " + lack.Do })
		return errors.New(strings.Join(lacks, "; "))
	}
	return a.checkKinds(client)
}

// whoAmI returns the name of the user as the API server knows it.
func whoAmI(ctx context.Context, client kubernetes.Interface) (string, error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		// The API server has answered, and what matters are the rights.
		return "the user of this file", nil
	}
	if err != nil {
		return "", err
	}
	return "user " + review.Status.UserInfo.Username, nil
}

// checkKinds returns an error with the kinds that do not exist.
func (a *access) checkKinds(client kubernetes.Interface) error {
	var absent []string
	for version, resources := range a.kinds {
		list, err := client.Discovery().ServerResourcesForGroupVersion(version)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the resources of %s: %w", version, err)
		}
		var present []string
		if err == nil {
			present = lo.Map(list.APIResources, func(r metav1.APIResource, _ int) string { return r.Name })
		}
		absent = append(absent, lo.Map(lo.Without(resources, present...), func(name string, _ int) string { return name + " in " + version })...)
	}
	if len(absent) == 0 {
		return nil
	}
	return fmt.Errorf("the cluster has no %s: %s", strings.Join(slices.Sorted(slices.Values(absent)), ", no "), a.crds)
}

// limited returns a copy of a configuration for single requests.
func limited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Timeout, config.ContentType = -1, preflightTimeout, runtime.ContentTypeJSON
	config.UserAgent = build.Name + "/" + core.Version
	return config
}
