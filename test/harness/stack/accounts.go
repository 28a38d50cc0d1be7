// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// serviceAccounts is the group of all service accounts, by which the API server recognizes them.
	serviceAccounts = "system:serviceaccounts"
	// processes is the group of those that the stack creates. Others have only the rights that a test gives them.
	processes = "stack:processes"
)

// createAccounts gives each process that is not part of a control plane its own service account, as in a real cluster.
// The API server divides the requests that it works on among its users, except for members of system:masters, which
// have no limit (https://kubernetes.io/docs/concepts/cluster-administration/flow-control/).
func (b *builder) createAccounts(ctx context.Context) error {
	if err := os.MkdirAll(b.state.accounts(), 0o700); err != nil {
		return err
	}
	var clusters []client.Client // those of this stack
	if b.opts.NeighbourOf == nil {
		clusters = append(clusters, b.Management)
	}
	if b.opts.Placement.Separate() && b.opts.Manages == nil {
		clusters = append(clusters, b.Workload)
	}
	for _, c := range clusters {
		// The operator is not in this group: it has only the rights of its installation.
		if err := c.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "stack"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: processes}},
		}); err != nil {
			return fmt.Errorf("giving the processes their rights: %w", err)
		}
	}
	errs := []error{b.CreateOperatorAccount(ctx, b.opts.named(Operator))}
	for _, name := range []string{ClusterAPI, KubeadmBootstrap, KubeadmControl, Infrastructure, RealProvider, KarpenterKwok} {
		errs = append(errs,
			writeKubeconfigAs(name, b.Kubeconfig(), b.state.workloadAccount(name), processes),
			writeKubeconfigAs(name, b.ManagementKubeconfig(), b.state.managementAccount(name), processes))
	}
	return errors.Join(errs...)
}

// writeKubeconfigAs writes a copy of a kubeconfig whose users act as a service account that is in more groups.
func writeKubeconfigAs(account, from, to string, groups ...string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = userOf(account)
		user.ImpersonateGroups = append([]string{serviceAccounts, "system:authenticated"}, groups...)
	}
	return clientcmd.WriteToFile(*config, to)
}
