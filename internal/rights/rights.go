// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/karpenter-capi/karpenter-capi/charts"
)

// Right is one verb on one resource. The namespace is empty for the whole cluster.
type Right struct {
	Group, Resource, Verb, Namespace string
}

// Attributes returns the right as the API server is asked for it.
func (r Right) Attributes() *authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	return &authorizationv1.ResourceAttributes{
		Group: r.Group, Resource: resource, Subresource: subresource, Verb: r.Verb, Namespace: r.Namespace,
	}
}

// devices is the API group of dynamic resource allocation.
const devices = "resource.k8s.io"

// optional are the API groups that not every cluster has, and without which the operator works.
var optional = []string{"autoscaling.k8s.io", "autoscaling.x-k8s.io", devices}

// required reports whether the operator does not work without an API group.
func required(group string, _ int) bool { return !slices.Contains(optional, group) }

// needed returns the rights that rules give in a namespace to the API groups for which is returns true. It omits rules for all
// resources of a group, which an installation can narrow to those in use, and rules for named objects.
func needed(rules []rbacv1.PolicyRule, namespace string, is func(group string, _ int) bool) []Right {
	var rights []Right
	for _, rule := range rules {
		if slices.Contains(rule.Resources, rbacv1.ResourceAll) || len(rule.ResourceNames) > 0 {
			continue
		}
		for _, group := range lo.Filter(rule.APIGroups, is) {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, Right{Group: group, Resource: resource, Verb: verb, Namespace: namespace})
				}
			}
		}
	}
	return lo.Uniq(rights)
}

// Files with rules, by the cluster in which the operator needs them. Those in the management cluster can be limited to the
// namespace of the Cluster.
var (
	Workload          = []string{"workload", "karpenter-core"}
	Management        = []string{"management"}
	ManagementCluster = []string{"management-cluster"}
)

// Needed returns the rights that files of rules give in a namespace, and without which the operator does not start.
func Needed(files []string, namespace string) ([]Right, error) {
	rules, err := read(files)
	return needed(rules, namespace, required), err
}

// ForDevices returns the rights that the operator needs in addition if Karpenter plans Nodes for ResourceClaims.
func ForDevices() ([]Right, error) {
	rules, err := read(Workload)
	return needed(rules, "", func(group string, _ int) bool { return group == devices }), err
}

func read(files []string) ([]rbacv1.PolicyRule, error) {
	var all []rbacv1.PolicyRule
	for _, file := range files {
		rules, err := charts.Rules(file)
		if err != nil {
			return nil, err
		}
		all = append(all, rules...)
	}
	return all, nil
}

// Kind is a kind of a provider that is in use.
type Kind struct {
	Group, Resource string
	// ReadOnly reports whether the operator only reads objects of the kind.
	ReadOnly bool
}

// reading are the verbs of kinds that the operator only reads.
var reading = []string{"get", "list", "watch"}

// OfKinds returns the rights to kinds that are in use, from the rules in files for all resources of a group. An installation can narrow
// these rules, so the operator starts without some of them.
func OfKinds(files []string, namespace string, used []Kind) ([]Right, error) {
	rules, err := read(files)
	if err != nil {
		return nil, err
	}
	var rights []Right
	for _, rule := range rules {
		if !slices.Contains(rule.Resources, rbacv1.ResourceAll) {
			continue
		}
		for _, kind := range used {
			if !slices.Contains(rule.APIGroups, kind.Group) {
				continue
			}
			for _, verb := range rule.Verbs {
				if !kind.ReadOnly || slices.Contains(reading, verb) {
					rights = append(rights, Right{Group: kind.Group, Resource: kind.Resource, Verb: verb, Namespace: namespace})
				}
			}
		}
	}
	return lo.Uniq(rights), nil
}

// reviewers is how many rights are asked for at the same time.
const reviewers = 8

// Missing returns the rights that a user does not have. allowed reads from the API server whether the user has one.
func Missing(ctx context.Context, rights []Right, allowed func(context.Context, *authorizationv1.ResourceAttributes) (bool, error)) ([]Right, error) {
	has, failed := make([]bool, len(rights)), make([]error, len(rights))
	workqueue.ParallelizeUntil(ctx, reviewers, len(rights), func(i int) {
		has[i], failed[i] = allowed(ctx, rights[i].Attributes())
	})
	if err, found := lo.Find(failed, func(err error) bool { return err != nil }); found {
		return nil, err
	}
	return lo.Filter(rights, func(_ Right, i int) bool { return !has[i] }), ctx.Err()
}

// User is a user as the API server knows it.
type User struct {
	Name   string
	Groups []string
}

// serviceAccounts is the prefix of the names of ServiceAccounts, and of their groups (kubernetes:
// staging/src/k8s.io/apiserver/pkg/authentication/serviceaccount/util.go).
const serviceAccounts = "system:serviceaccount"

// ServiceAccount returns the user that a ServiceAccount is.
func ServiceAccount(namespace, name string) User {
	return Authenticated(fmt.Sprintf("%s:%s:%s", serviceAccounts, namespace, name), nil)
}

// Authenticated returns a user with the groups that its credentials name, and those that the API server adds.
func Authenticated(name string, groups []string) User {
	groups = slices.Clone(groups)
	if account, is := strings.CutPrefix(name, serviceAccounts+":"); is {
		namespace, _, _ := strings.Cut(account, ":")
		groups = append(groups, serviceAccounts+"s", serviceAccounts+"s:"+namespace)
	}
	return User{Name: name, Groups: append(groups, "system:authenticated")}
}
