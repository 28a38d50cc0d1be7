// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/install"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// lifecycle follows the guide with both charts: it installs, upgrades, rolls back and uninstalls them, while there are
// nodes. The values are those of the user. The section of the guide describes the installation; again installs the
// operator a second time.
func lifecycle(ctx context.Context, t *testing.T, s *stack.Stack, d *install.Guide, section string, values charts.Values, operator, again func() string) {
	g := NewWithT(t)
	plain := &charts.Helm{Dir: t.TempDir(), Kubeconfig: s.Kubeconfig()}
	helm := func(values charts.Values, args ...string) string {
		t.Helper()
		printed, err := plain.Run(ctx, values, append(args, "--namespace="+install.Namespace)...)
		g.Expect(err).NotTo(HaveOccurred())
		return printed
	}
	guided := func(section, begin string, parts ...string) string {
		t.Helper()
		return d.Run(ctx, t, s.Kubeconfig(), d.Command(t, section, begin, parts...))
	}
	binary := filepath.Join(install.Binaries(), install.Binary)
	write(t, d, values)
	guided(section, "helm install karpenter-capi-crd")
	g.Expect(install.PresentCRDs(ctx, s)).To(Equal(install.CRDs))
	install.AwaitServed(ctx, g, s)
	g.Expect(operator()).To(And(
		Not(ContainSubstring("Install the chart")), ContainSubstring("kubectl -n karpenter-capi-system rollout status deployment/karpenter-capi")))

	process := install.Start(ctx, t, s, binary)
	g.Expect(s.Create(ctx, install.General)).To(Succeed())
	install.AwaitPods(ctx, g, s, 3)
	claims := claimUIDs(ctx, g, s)

	// An upgrade changes the Deployment and no node.
	before := install.Installed(ctx, g, s)
	changed := maps.Clone(values)
	maps.Copy(changed, charts.Values{"logLevel": "debug", "replicas": 3})
	write(t, d, changed)
	guided("Upgrade", "helm upgrade karpenter-capi-crd")
	guided("Upgrade", "helm upgrade karpenter-capi")
	write(t, d, values)
	helm(charts.Values{"additionalAnnotations": charts.Values{"example.com/mine": "yes"}}, "upgrade", charts.CRDs, charts.Chart(charts.CRDs))
	after := install.Installed(ctx, g, s)
	g.Expect(*after.Spec.Replicas).To(BeEquivalentTo(3))
	g.Expect(after.Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "LOG_LEVEL", Value: "debug"}))
	process.Stop()
	process = install.Start(ctx, t, s, binary)
	g.Consistently(ctx, func(g Gomega) { g.Expect(claimUIDs(ctx, g, s)).To(Equal(claims)) }).WithTimeout(5 * time.Second).WithPolling(install.Poll).Should(Succeed())

	// A rollback reverts that.
	guided("Upgrade", "helm rollback karpenter-capi")
	guided("Upgrade", "helm rollback karpenter-capi-crd")
	back := install.Installed(ctx, g, s)
	g.Expect(back.Spec.Template).To(Equal(before.Spec.Template))
	g.Expect(back.Spec.Replicas).To(Equal(before.Spec.Replicas))

	// Without the operator its nodes stay, and one that is installed again finds them.
	manifests := helm(nil, "get", "manifest", charts.Operator)
	process.Stop()
	guided("Uninstall", "helm uninstall karpenter-capi")
	checkGone(ctx, g, s.Workload, manifests)
	g.Expect(claimUIDs(ctx, g, s)).To(Equal(claims))
	g.Expect(install.RunningPods(ctx, s)).To(Equal(3))
	again()
	process = install.Start(ctx, t, s, binary)
	pods := &appsv1.Deployment{}
	pods.Namespace, pods.Name = corev1.NamespaceDefault, "general"
	g.Expect(s.Workload.Delete(ctx, pods, client.PropagationPolicy("Background"))).To(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		machines, nodes := &clusterv1.MachineList{}, &corev1.NodeList{}
		g.Expect(s.Management.List(ctx, machines)).To(Succeed())
		g.Expect(s.Workload.List(ctx, nodes, stack.Workers)).To(Succeed())
		g.Expect([]int{len(claimUIDs(ctx, g, s)), len(machines.Items), len(nodes.Items)}).To(Equal([]int{0, 0, 0}), "claims, Machines, Nodes")
	}).WithTimeout(3 * time.Minute).WithPolling(install.Poll).Should(Succeed())
	// Templates have a finalizer, so they are deleted while the operator runs.
	guided("Uninstall", "kubectl delete nodepools")
	guided("Uninstall", "kubectl delete karpentermachinetemplates")
	process.Stop()
	guided("Uninstall", "helm uninstall karpenter-capi")

	// The CustomResourceDefinitions stay unless that is disabled.
	guided("Uninstall", "helm uninstall karpenter-capi-crd")
	g.Expect(install.PresentCRDs(ctx, s)).To(Equal(install.CRDs))
	helm(charts.Values{"keep": false}, "install", charts.CRDs, charts.Chart(charts.CRDs))
	guided("Uninstall", "helm uninstall karpenter-capi-crd")
	g.Eventually(ctx, func() ([]string, error) { return install.PresentCRDs(ctx, s) }).WithTimeout(3 * time.Minute).WithPolling(install.Poll).Should(BeEmpty())
	install.CheckRequests(t, s, charts.Operator)
}

// write writes the values.yaml of the guide's user.
func write(t *testing.T, d *install.Guide, values charts.Values) {
	t.Helper()
	g := NewWithT(t)
	text, err := json.Marshal(values)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(d.Dir, "values.yaml"), text, 0o600)).To(Succeed())
}

// claimUIDs returns the UIDs of the existing claims.
func claimUIDs(ctx context.Context, g Gomega, s *stack.Stack) []string {
	claims := &karpv1.NodeClaimList{}
	g.Expect(s.Workload.List(ctx, claims)).To(Succeed())
	uids := []string{}
	for i := range claims.Items {
		uids = append(uids, string(claims.Items[i].UID))
	}
	slices.Sort(uids)
	return uids
}

// checkGone checks that objects were deleted.
func checkGone(ctx context.Context, g *WithT, c client.Client, manifests string) {
	objects, err := charts.Decode(manifests)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).NotTo(BeEmpty())
	for _, object := range objects {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%s %s: %v", object.GetKind(), object.GetName(), err)
	}
}
