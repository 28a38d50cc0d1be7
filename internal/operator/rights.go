// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/karpenter-capi/karpenter-capi/charts"
)

// right is one verb on one resource. The namespace is empty for the whole cluster.
type right struct {
	group, resource, verb, namespace string
}

// attributes returns the right as the API server is asked for it.
func (r right) attributes() *authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	return &authorizationv1.ResourceAttributes{
		Group: r.group, Resource: resource, Subresource: subresource, Verb: r.verb, Namespace: r.namespace,
	}
}

// optional are the API groups that not every cluster has, and without which the operator works.
var optional = []string{"autoscaling.k8s.io", "autoscaling.x-k8s.io"}

// needed returns the rights that rules give in a namespace. It omits rules for all resources of a group, which an
// installation can narrow to those in use, and rules for named objects.
func needed(rules []rbacv1.PolicyRule, namespace string) []right {
	var rights []right
	for _, rule := range rules {
		if slices.Contains(rule.Resources, rbacv1.ResourceAll) || len(rule.ResourceNames) > 0 {
			continue
		}
		for _, group := range lo.Without(rule.APIGroups, optional...) {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, right{group: group, resource: resource, verb: verb, namespace: namespace})
				}
			}
		}
	}
	return lo.Uniq(rights)
}

// Files with rules, by the cluster in which the operator needs them. Those in the management cluster can be limited to the
// namespace of the Cluster.
var (
	workloadRules          = []string{"workload", "karpenter-core"}
	managementRules        = []string{"management"}
	managementClusterRules = []string{"management-cluster"}
)

// neededOf returns the rights that files of rules give in a namespace.
func neededOf(files []string, namespace string) ([]right, error) {
	var rights []right
	for _, file := range files {
		rules, err := charts.Rules(file)
		if err != nil {
			return nil, err
		}
		rights = append(rights, needed(rules, namespace)...)
	}
	return lo.Uniq(rights), nil
}

// reviewers is how many rights are asked for at the same time.
const reviewers = 8

// missing returns the rights that a client does not have.
func missing(ctx context.Context, client kubernetes.Interface, rights []right) ([]right, error) {
	denied, failed := make([]bool, len(rights)), make([]error, len(rights))
	workqueue.ParallelizeUntil(ctx, reviewers, len(rights), func(i int) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: rights[i].attributes()}}
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if failed[i] = err; err == nil {
			denied[i] = !review.Status.Allowed
		}
	})
	if err, found := lo.Find(failed, func(err error) bool { return err != nil }); found {
		return nil, fmt.Errorf("asking for its rights: %w", err)
	}
	return lo.Filter(rights, func(_ right, i int) bool { return denied[i] }), ctx.Err()
}

// describe returns missing rights of a user, and the commands that grant them.
func describe(missing []right, user string) string {
	byNamespace := lo.GroupBy(missing, func(r right) string { return r.namespace })
	var texts []string
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		texts = append(texts, describeIn(namespace, byNamespace[namespace], user))
	}
	return strings.Join(texts, "; ")
}

func describeIn(namespace string, missing []right, user string) string {
	resources := lo.GroupBy(missing, func(r right) string { return r.resource + dotted(r.group) })
	var lacks, grants []string
	for _, resource := range slices.Sorted(maps.Keys(resources)) {
		verbs := strings.Join(lo.Map(resources[resource], func(r right, _ int) string { return r.verb }), ",")
		group := resources[resource][0].group
		lacks = append(lacks, fmt.Sprintf("%s %s (API group %q)", verbs, resources[resource][0].resource, group))
		grants = append(grants, fmt.Sprintf("{apiGroups: [%q], resources: [%s], verbs: [%s]}", group, resources[resource][0].resource, strings.ReplaceAll(verbs, ",", ", ")))
	}
	where, role := "in the whole cluster", "ClusterRole"
	if namespace != "" {
		where, role = "in namespace "+namespace, "Role"
	}
	return fmt.Sprintf("%s has no right %s to %s: install the roles of the chart karpenter-capi, or bind it to a %s with the rules [%s]",
		user, where, strings.Join(lacks, ", "), role, strings.Join(grants, ", "))
}

// dotted returns the suffix of a resource of a group.
func dotted(group string) string { return lo.Ternary(group == "", "", "."+group) }
