// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rights"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// userOf returns the user name of a service account of the stack.
func userOf(account string) string {
	return "system:serviceaccount:" + ClusterNamespace + ":" + account
}

// place is a cluster in which the operator has roles.
type place struct {
	cluster client.Client
	log     audit.Log
	roles   []string
}

// places returns the clusters with the roles that an operator has in each.
func (s *Stack) places() []place {
	workload := place{cluster: s.Workload, log: audit.Log{Path: filepath.Join(s.LogDir(), "audit.log")}, roles: rights.All}
	if !s.Separate() {
		return []place{workload}
	}
	workload.roles = []string{rights.Workload, rights.Core}
	management := place{
		cluster: s.Management, log: audit.Log{Path: filepath.Join(s.LogDir(), ManagementPrefix+"audit.log")},
		roles: []string{rights.Management, rights.ManagementCluster},
	}
	home := &workload
	if s.Placement() == InManagement {
		home = &management
	}
	home.roles = append(home.roles, rights.Metrics, rights.LeaderElection)
	return []place{workload, management}
}

// CreateOperatorAccount gives an operator a service account with exactly the rights that config/rbac has for it, and
// writes its kubeconfigs, see OperatorAccount. Rights to objects in a namespace are limited to the namespace of the
// Cluster. Each operator of a stack needs its own account.
func (s *Stack) CreateOperatorAccount(ctx context.Context, account string) error {
	granted, err := rights.Read(charts.Root())
	if err != nil {
		return err
	}
	if s.Placement() == InManagement {
		for i := range granted[rights.LeaderElection] {
			if rule := &granted[rights.LeaderElection][i]; len(rule.ResourceNames) > 0 {
				rule.ResourceNames = []string{operator.LeaseOf(ClusterNamespace, ClusterName)}
			}
		}
	}
	for _, place := range s.places() {
		for _, role := range place.roles {
			if err := grant(ctx, place.cluster, account, role, granted[role]); err != nil {
				return fmt.Errorf("giving %s the role %s: %w", account, role, err)
			}
		}
	}
	workload, management := s.OperatorAccount(account)
	return errors.Join(writeKubeconfigAs(account, s.Kubeconfig(), workload), writeKubeconfigAs(account, s.ManagementKubeconfig(), management))
}

// OperatorAccount returns the kubeconfigs of an account for both clusters.
func (s *Stack) OperatorAccount(account string) (workload, management string) {
	return s.state.workloadAccount(account), s.state.managementAccount(account)
}

// grant binds a role to an account. Several operators, and several stacks with the same workload cluster, share roles.
func grant(ctx context.Context, cluster client.Client, account, role string, rules []rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{Name: account + ":" + role}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ClusterNamespace, Name: account}}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
	if role == rights.Management || role == rights.LeaderElection {
		meta.Namespace = ClusterNamespace
		binding = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
	}
	for _, object := range []client.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules}, binding} {
		if err := cluster.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// AddUsage adds the requests of the stack's operator until now to the usage of its rights.
func (s *Stack) AddUsage(usage *rights.Usage) error {
	granted, err := rights.Read(charts.Root())
	if err != nil {
		return err
	}
	for _, place := range s.places() {
		entries, err := place.log.Requests()
		if errors.Is(err, os.ErrNotExist) {
			continue // The cluster belongs to another stack.
		} else if err != nil {
			return err
		}
		usage.Add(userOf(Operator), granted, place.roles, entries)
	}
	return nil
}
