// SPDX-License-Identifier: Apache-2.0

//go:build install

package clusterctl

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/install"
)

// The operator of a Cluster in the management cluster, in the namespace of that Cluster. It creates Nodes in the workload
// cluster, and removing it leaves the Cluster as it is.
func TestManagementCluster(t *testing.T) {
	ctx, s := install.NewStack(t, stack.InManagement)
	g := NewWithT(t)
	const section = "The operator in the management cluster"
	repository, guide := install.OpenClusterctlGuide(ctx, t, s, "addon-components-management.yaml")
	repository.Release(t, install.ThisSource(), guide.Version(t, install.Published+`/(v[0-9.]+)/`))
	managed := func(command string) {
		t.Helper()
		guide.Run(ctx, t, s.ManagementKubeconfig(), command)
	}
	namespace := &corev1.Namespace{}
	g.Expect(s.Management.Get(ctx, client.ObjectKey{Name: stack.ClusterNamespace}, namespace)).To(Succeed())

	guide.Run(ctx, t, s.Kubeconfig(), guide.Command(t, section, "kubectl apply"))
	install.AwaitServed(ctx, g, s)
	// The core provider is installed before, because clusterctl would install it in the namespace of the Cluster, too.
	guide.Execute(ctx, t, s.ManagementKubeconfig(), "clusterctl init --core cluster-api --bootstrap - --control-plane -")
	// clusterctl waits forever if it finds its test of cert-manager while that is being deleted.
	g.Eventually(ctx, func(g Gomega) {
		tested := &corev1.Namespace{}
		g.Expect(s.Management.Get(ctx, client.ObjectKey{Name: "cert-manager-test"}, tested)).To(Satisfy(apierrors.IsNotFound))
	}).WithTimeout(time.Minute).WithPolling(install.Poll).Should(Succeed())
	managed(guide.Command(t, section, "KARPENTER_CLUSTER_NAME="+stack.ClusterName+" clusterctl init"))
	g.Expect(install.Installed(ctx, g, s).Namespace).To(Equal(stack.ClusterNamespace))
	g.Expect(install.PresentCRDsIn(ctx, s.Management)).To(BeEmpty())

	operator := install.Start(ctx, t, s, install.ThisSource().Binary)
	g.Expect(s.Create(ctx, install.General)).To(Succeed())
	install.AwaitPods(ctx, g, s, 3)
	g.Expect(s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: "karpenter-capi"}, &coordinationv1.Lease{})).To(Succeed())
	operator.Stop()
	install.CheckDenied(t, s)

	managed("clusterctl delete --addon karpenter")
	managed(guide.Command(t, section, "kubectl delete"))
	provided := client.MatchingLabels{clusterv1.ProviderNameLabel: "addon-karpenter"}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		g.Expect(s.Management.List(ctx, list, provided)).To(Succeed())
		g.Expect(list).To(HaveField("Items", BeEmpty()), "%T", list)
	}
	after := &corev1.Namespace{}
	g.Expect(s.Management.Get(ctx, client.ObjectKeyFromObject(namespace), after)).To(Succeed())
	g.Expect(after.UID).To(Equal(namespace.UID))
	g.Expect(after.DeletionTimestamp).To(BeNil())
	g.Expect(after.Labels).NotTo(HaveKey("pod-security.kubernetes.io/enforce"), "other Pods of the namespace must go on")
	g.Expect(s.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: stack.ClusterName}, &clusterv1.Cluster{})).To(Succeed())
	g.Expect(install.RunningPods(ctx, s)).To(Equal(3))
}
