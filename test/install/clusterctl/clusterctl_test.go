// SPDX-License-Identifier: Apache-2.0

//go:build install

package clusterctl

import (
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const (
	namespace  = "karpenter-capi-system"
	account    = "system:serviceaccount:" + namespace + ":karpenter-capi-manager"
	deployment = "karpenter-capi-controller-manager"

	// What the demo's Deployments have, and a third of it.
	manyPods, fewPods = 60, 20
)

// The life of an installation, with the commands of the guide: install, make Nodes and consolidate them, upgrade, remove,
// install again, and remove everything. What nobody asked to go stays all the time.
func TestClusterctl(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	ctx, s := startStack(t)
	g := NewWithT(t)
	repository := repositories(t.TempDir())
	repository.certManager(t)
	repository.clusterAPI(ctx, t, s)
	repository.release(t, "v0.1.0")
	guide := openGuide(t, "clusterctl.md")
	guide.repository = repository.addon()
	guide.environment = append(os.Environ(), "PATH="+binaries(t)+":"+os.Getenv("PATH"), "KUBECONFIG="+s.Kubeconfig(), "GOPROXY=off",
		// Fake kubelets would only pretend to run a Pod.
		"XDG_CONFIG_HOME="+repository.config(t), "KARPENTER_REPLICAS=0")

	guide.run(t, "kubectl apply --server-side -f "+published+"/v0.1.0/karpenter-crds.yaml")
	guide.run(t, "clusterctl init --core cluster-api --bootstrap - --control-plane - --addon karpenter")
	g.Expect(guide.run(t, "kubectl get providers --all-namespaces")).To(MatchRegexp(namespace + ` +addon-karpenter .*v0\.1\.0`))
	installed := `addon-karpenter +` + namespace + ` +AddonProvider +`
	g.Expect(guide.run(t, "clusterctl upgrade plan")).To(MatchRegexp(installed + `v0\.1\.0 +Already up to date`))

	// The API server must ask for roles, or the rest of this test shows little.
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: account, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "namespaces"},
	}}
	g.Expect(s.Workload.Create(ctx, review)).To(Succeed())
	g.Expect(review.Status.Allowed).To(BeFalse(), "%s may delete Namespaces", account)

	operator := runInstalled(ctx, t, s, namespace)
	lease := client.ObjectKey{Namespace: namespace, Name: "karpenter-leader-election"}
	g.Eventually(ctx, func() error { return s.Workload.Get(ctx, lease, &coordinationv1.Lease{}) }).
		WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed(), "the lease is in the operator's namespace")

	apply(ctx, t, s, "1-machines.yaml", "2-template.yaml", "3-nodepool.yaml", "4-deployments.yaml")
	most := await(ctx, t, s, "all Pods to run", 5*time.Minute, func(c counts) bool {
		return c.running == manyPods && c.pods == manyPods
	})
	for _, d := range deployments(ctx, g, s) {
		fewer := d.DeepCopy()
		fewer.Spec.Replicas = new(*d.Spec.Replicas * fewPods / manyPods)
		g.Expect(s.Workload.Patch(ctx, fewer, client.MergeFrom(&d))).To(Succeed())
	}
	await(ctx, t, s, "fewer Pods to run on half of the Nodes", 5*time.Minute, func(c counts) bool {
		return c.running == fewPods && c.pods == fewPods && c.nodes <= most.nodes/2 && c.claims == c.nodes && c.machines == c.nodes
	})
	settle(ctx, t, s)
	operator.stop(t)
	checkRequests(t, s, account)
	running := nodes(ctx, g, s)

	repository.release(t, "v0.1.1")
	g.Expect(guide.run(t, "clusterctl upgrade plan")).To(MatchRegexp(installed + `v0\.1\.0 +v0\.1\.1`))
	guide.run(t, "clusterctl upgrade apply --addon karpenter:v0.1.1")
	operator = runInstalled(ctx, t, s, namespace)
	stays(ctx, t, s, running)
	operator.stop(t)

	guide.run(t, "clusterctl delete --addon karpenter")
	gone(ctx, g, s, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment}})
	provided := client.MatchingLabels{clusterv1.ProviderNameLabel: "addon-karpenter"}
	for _, list := range []client.ObjectList{
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		g.Expect(s.Workload.List(ctx, list, provided)).To(Succeed())
		g.Expect(list).To(HaveField("Items", BeEmpty()), "%T", list)
	}
	stays(ctx, t, s, running)

	guide.run(t, "clusterctl init --addon karpenter")
	operator = runInstalled(ctx, t, s, namespace)
	stays(ctx, t, s, running)
	for _, d := range deployments(ctx, g, s) {
		g.Expect(s.Workload.Delete(ctx, &d, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	// Its NodeClaims go with it.
	g.Expect(s.Workload.DeleteAllOf(ctx, &karpv1.NodePool{})).To(Succeed())
	await(ctx, t, s, "nothing to be left", 5*time.Minute, func(c counts) bool { return c == counts{} })
	g.Expect(s.Workload.DeleteAllOf(ctx, &v1alpha1.KarpenterMachineTemplate{})).To(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		for _, list := range []client.ObjectList{&karpv1.NodePoolList{}, &v1alpha1.KarpenterMachineTemplateList{}, &clusterv1.MachineDeploymentList{}} {
			g.Expect(s.Workload.List(ctx, list)).To(Succeed())
			g.Expect(list).To(HaveField("Items", BeEmpty()), "%T", list)
		}
	}).WithTimeout(3 * time.Minute).WithPolling(time.Second).Should(Succeed())
	operator.stop(t)
	checkRequests(t, s, account)

	guide.run(t, "clusterctl delete --addon karpenter --include-crd --include-namespace")
	g.Eventually(ctx, func() []string { return names(crdsOf(ctx, g, s, ours)) }).WithTimeout(time.Minute).Should(BeEmpty(), "this project's CRD")
	g.Expect(names(crdsOf(ctx, g, s, karpenters))).To(ContainElements("nodepools.karpenter.sh", "nodeclaims.karpenter.sh"))
	g.Eventually(ctx, func(g Gomega) {
		gone(ctx, g, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
}
