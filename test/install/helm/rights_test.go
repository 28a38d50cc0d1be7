// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/install"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// With rights to the kinds in use only, nodes come and go, a template is deleted with its copies, and no request is denied.
func TestRightsToKindsInUse(t *testing.T) {
	ctx, s := install.NewStack(t, stack.Joined)
	g := NewWithT(t)
	helm := &charts.Helm{Dir: t.TempDir(), Kubeconfig: s.Kubeconfig()}
	values := local()
	values["rbac"] = charts.Values{"infrastructureKinds": []charts.Values{
		{"apiGroup": "infrastructure.cluster.x-k8s.io", "resources": []string{"simulatedmachinetemplates"}},
	}}
	for chart, values := range map[string]charts.Values{charts.CRDs: nil, charts.Operator: values} {
		_, err := helm.Run(ctx, values, "install", chart, charts.Chart(chart), "--namespace="+install.Namespace, "--create-namespace")
		g.Expect(err).NotTo(HaveOccurred())
	}
	install.AwaitServed(ctx, g, s)
	install.Start(ctx, t, s, filepath.Join(install.Binaries(), install.Binary))
	g.Expect(s.Create(ctx, install.General)).To(Succeed())
	install.AwaitPods(ctx, g, s, 3)

	pods := &appsv1.Deployment{}
	pods.Namespace, pods.Name = corev1.NamespaceDefault, "general"
	g.Expect(s.Workload.Delete(ctx, pods, client.PropagationPolicy("Background"))).To(Succeed())
	g.Eventually(ctx, func(g Gomega) { g.Expect(claimUIDs(ctx, g, s)).To(BeEmpty()) }).WithTimeout(3*time.Minute).WithPolling(install.Poll).Should(Succeed(), "claims")
	template := &v1alpha1.KarpenterMachineTemplate{}
	template.Name = "general"
	g.Expect(s.Workload.Delete(ctx, template)).To(Succeed())
	g.Eventually(ctx, func() error { return s.Workload.Get(ctx, client.ObjectKeyFromObject(template), template) }).
		WithTimeout(2*time.Minute).WithPolling(install.Poll).Should(Satisfy(func(err error) bool { return err != nil && client.IgnoreNotFound(err) == nil }), "the template")
	install.CheckRequests(t, s, charts.Operator)
}
