// SPDX-License-Identifier: Apache-2.0

//go:build install

package clusterctl

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/install"
)

const (
	account    = "karpenter-capi-manager"
	deployment = "karpenter-capi-controller-manager"

	// The replicas of the demo's Deployments, and a third of them.
	manyPods, fewPods = 60, 20
)

// The life of an installation, with the commands of the guide: install, create Nodes and consolidate them, upgrade,
// remove, install again, and remove everything. Everything else stays all the time.
func TestClusterctl(t *testing.T) {
	ctx, s := install.NewStack(t, stack.Joined)
	g := NewWithT(t)
	previous, next := install.PreviousSource(t), install.ThisSource()
	repository, guide := install.OpenClusterctlGuide(ctx, t, s, "addon-components.yaml")
	from := guide.Version(t, install.Published+`/(v[0-9.]+)/`)
	to := guide.Version(t, `upgrade apply --addon karpenter:(v[0-9.]+)`)
	repository.Release(t, previous, from)
	run := func(command string) string {
		t.Helper()
		return guide.Run(ctx, t, s.Kubeconfig(), command)
	}
	start := func(of install.Source) *install.Operator {
		t.Helper()
		installed := &install.Installed(ctx, g, s).Spec
		// The variable KARPENTER_REPLICAS requests this: this process is its only one.
		g.Expect(installed.Replicas).To(HaveValue(BeZero()))
		g.Expect(installed.Template.Spec.Containers[0].Name).To(Equal("manager"))
		return install.Start(ctx, t, s, of.Binary)
	}

	applyCRDs := func(version string) {
		t.Helper()
		run("kubectl apply --server-side -f " + install.Published + "/" + version + "/karpenter-crds.yaml")
	}

	applyCRDs(from)
	run("clusterctl init --core cluster-api --bootstrap - --control-plane - --addon karpenter")
	g.Expect(run("kubectl get providers --all-namespaces")).To(MatchRegexp(install.Namespace + ` +addon-karpenter .*` + from))
	installed := `addon-karpenter +` + install.Namespace + ` +AddonProvider +`
	g.Expect(run("clusterctl upgrade plan")).To(MatchRegexp(installed + from + ` +Already up to date`))

	// The API server must check roles, because the rest of this test depends on it.
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + install.Namespace + ":" + account, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "namespaces"},
	}}
	g.Expect(s.Workload.Create(ctx, review)).To(Succeed())
	g.Expect(review.Status.Allowed).To(BeFalse(), "%s may delete Namespaces", account)

	operator := start(previous)
	lease := client.ObjectKey{Namespace: install.Namespace, Name: "karpenter-leader-election"}
	g.Eventually(ctx, func() error { return s.Workload.Get(ctx, lease, &coordinationv1.Lease{}) }).
		WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed(), "the lease is in the operator's namespace")

	apply(ctx, t, s)
	most := await(ctx, t, s, "all Pods to run", 5*time.Minute, func(c census.Census) bool {
		return c.Running == manyPods && c.Pods == manyPods
	})
	for _, d := range deployments(ctx, g, s) {
		fewer := d.DeepCopy()
		fewer.Spec.Replicas = new(*d.Spec.Replicas * fewPods / manyPods)
		g.Expect(s.Workload.Patch(ctx, fewer, client.MergeFrom(&d))).To(Succeed())
	}
	// Which of the Nodes Karpenter can do without depends on how the Pods were spread over them.
	await(ctx, t, s, "fewer Pods to run on at most two thirds of the Nodes", 5*time.Minute, func(c census.Census) bool {
		return c.Running == fewPods && c.Pods == fewPods && c.Nodes <= most.Nodes*2/3 && c.Claims == c.Nodes && c.Machines == c.Nodes
	})
	settle(ctx, t, s)
	operator.Stop()
	install.CheckRequests(t, s, account)
	running := standing(ctx, g, s)

	repository.Release(t, next, to)
	g.Expect(run("clusterctl upgrade plan")).To(MatchRegexp(installed + from + ` +` + to))
	applyCRDs(to)
	run("clusterctl upgrade apply --addon karpenter:" + to)
	operator = start(next)
	stays(ctx, t, s, running)
	operator.Stop()

	run("clusterctl delete --addon karpenter")
	gone(ctx, g, s, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: deployment}})
	provided := client.MatchingLabels{clusterv1.ProviderNameLabel: "addon-karpenter"}
	for _, list := range []client.ObjectList{
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		g.Expect(s.Workload.List(ctx, list, provided)).To(Succeed())
		g.Expect(list).To(HaveField("Items", BeEmpty()), "%T", list)
	}
	stays(ctx, t, s, running)

	// From here on, it has its rights to Cluster API's objects only in the namespace of the Cluster.
	run("KARPENTER_CLUSTER_NAMESPACE=" + stack.ClusterNamespace + " KARPENTER_MANAGEMENT_BINDING=RoleBinding clusterctl init --addon karpenter")
	run(guide.Command(t, "Rights in one namespace", "kubectl -n "+stack.ClusterNamespace+" create rolebinding"))
	for namespace, want := range map[string]bool{stack.ClusterNamespace: true, metav1.NamespaceSystem: false} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + install.Namespace + ":" + account,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Group: clusterv1.GroupVersion.Group, Resource: "machines", Verb: "delete"},
		}}
		g.Expect(s.Workload.Create(ctx, review)).To(Succeed())
		g.Expect(review.Status.Allowed).To(Equal(want), "%s may delete Machines in %s", account, namespace)
	}
	operator = start(next)
	stays(ctx, t, s, running)
	for _, d := range deployments(ctx, g, s) {
		g.Expect(s.Workload.Delete(ctx, &d, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	// Its NodeClaims are deleted with it.
	g.Expect(s.Workload.DeleteAllOf(ctx, &karpv1.NodePool{})).To(Succeed())
	await(ctx, t, s, "nothing to be left", 5*time.Minute, func(c census.Census) bool { c.Resources = 0; return c == census.Census{} })
	g.Expect(s.Workload.DeleteAllOf(ctx, &v1alpha1.KarpenterMachineTemplate{})).To(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		for _, list := range []client.ObjectList{&karpv1.NodePoolList{}, &v1alpha1.KarpenterMachineTemplateList{}, &clusterv1.MachineDeploymentList{}} {
			g.Expect(s.Workload.List(ctx, list)).To(Succeed())
			g.Expect(list).To(HaveField("Items", BeEmpty()), "%T", list)
		}
	}).WithTimeout(3 * time.Minute).WithPolling(time.Second).Should(Succeed())
	operator.Stop()
	install.CheckRequests(t, s, account)
	run("kubectl delete instancetypecatalogs --all")

	run("clusterctl delete --addon karpenter --include-crd --include-namespace")
	g.Eventually(ctx, func() ([]string, error) { return install.PresentCRDs(ctx, s) }).WithTimeout(time.Minute).WithPolling(install.Poll).
		Should(Equal(lo.Without(install.CRDs, install.OwnCRDs...)), "this project's CRDs are deleted, Karpenter's stay")
	g.Eventually(ctx, func(g Gomega) {
		gone(ctx, g, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: install.Namespace}})
	}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
}
