// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/install"
)

// The operator is in the management cluster, and reaches the workload cluster with the Secret that Cluster API creates and
// renews. The workload cluster has only the CustomResourceDefinitions.
func TestManagementCluster(t *testing.T) {
	ctx, s := install.NewStack(t, stack.InManagement)
	g := NewWithT(t)
	const section = "The operator in the management cluster"
	d := openGuide(t)
	d.Run(ctx, t, s.Kubeconfig(), d.Command(t, section, "helm install karpenter-capi-crd"))
	install.AwaitServed(ctx, g, s)
	values := local()
	values["placement"] = "ManagementCluster"
	write(t, d, values)
	d.Run(ctx, t, s.ManagementKubeconfig(), d.Command(t, section, "helm install karpenter-capi-demo"))

	process := install.Start(ctx, t, s, filepath.Join(install.Binaries(), install.Binary))
	g.Expect(s.Create(ctx, install.General)).To(Succeed())
	install.AwaitPods(ctx, g, s, 3)
	lease := client.ObjectKey{Namespace: stack.ClusterNamespace, Name: operator.LeaseOf(stack.ClusterNamespace, stack.ClusterName)}
	g.Expect(s.Management.Get(ctx, lease, &coordinationv1.Lease{})).To(Succeed())

	renewed := renew(ctx, g, s)
	process.Remount(ctx, g, s)
	log := audit.Log{Path: filepath.Join(s.LogDir(), "audit.log")}
	g.Eventually(ctx, func() (bool, error) {
		entries, _, err := log.Since(0)
		return lo.ContainsBy(entries, func(e audit.Entry) bool { return e.By(build.Name) && e.For(renewed) }), err
	}).WithTimeout(30*time.Second).WithPolling(install.Poll).Should(BeTrue(), "a request with the renewed kubeconfig")
	since, err := log.End()
	g.Expect(err).NotTo(HaveOccurred())
	pods := &appsv1.Deployment{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "general"}, pods)).To(Succeed())
	more := pods.DeepCopy()
	more.Spec.Replicas = new(int32(5))
	g.Expect(s.Workload.Patch(ctx, more, client.MergeFrom(pods))).To(Succeed())
	install.AwaitPods(ctx, g, s, 5)
	entries, _, err := log.Since(since)
	g.Expect(err).NotTo(HaveOccurred())
	created := lo.Filter(entries, func(e audit.Entry, _ int) bool { return e.What() == "create nodeclaims" && e.Succeeded() })
	g.Expect(lo.CountValuesBy(created, func(e audit.Entry) string { return e.User.Username })).
		To(And(HaveLen(1), HaveKey(renewed)), "users that created NodeClaims")
	process.Stop()
	install.CheckDenied(t, s)
}

// renew replaces the kubeconfig in Cluster API's Secret by one with other credentials, as Cluster API does before they
// expire. It returns their user.
func renew(ctx context.Context, g *WithT, s *stack.Stack) string {
	meta := metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: "renewed"}
	g.Expect(s.Workload.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta})).To(Succeed())
	g.Expect(s.Workload.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
	})).To(Succeed())
	secret := &corev1.Secret{}
	g.Expect(s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: stack.ClusterName + "-kubeconfig"}, secret)).To(Succeed())
	secret.Data["value"] = install.KubeconfigOf(ctx, g, s.Workload, client.ObjectKey{Namespace: meta.Namespace, Name: meta.Name}, s.Kubeconfig())
	g.Expect(s.Management.Update(ctx, secret)).To(Succeed())
	return "system:serviceaccount:" + meta.Namespace + ":" + meta.Name
}
