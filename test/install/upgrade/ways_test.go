// SPDX-License-Identifier: Apache-2.0

//go:build install

package upgrade

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/install"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// withHelm upgrades both charts, and rolls them back.
func withHelm(ctx context.Context, t *testing.T, s *stack.Stack, previous, next install.Source) way {
	t.Helper()
	g := NewWithT(t)
	settings := charts.Values{
		"clusterName": stack.ClusterName, "clusterNamespace": stack.ClusterNamespace, "allowedSecrets": []string{stack.BootstrapSecretName},
	}
	values, namespace := charts.Values{"settings": settings}, install.Namespace
	definitions, operator := &charts.Helm{Dir: t.TempDir(), Kubeconfig: s.Kubeconfig()}, &charts.Helm{Dir: t.TempDir(), Kubeconfig: s.Kubeconfig()}
	if s.Placement() == stack.InManagement {
		values["placement"], namespace, operator.Kubeconfig = "ManagementCluster", stack.ClusterNamespace, s.ManagementKubeconfig()
	}
	run := func(helm *charts.Helm, values charts.Values, arguments ...string) {
		t.Helper()
		_, err := helm.Run(ctx, values, arguments...)
		g.Expect(err).NotTo(HaveOccurred())
	}
	apply := func(verb string, of install.Source) {
		t.Helper()
		run(definitions, nil, verb, charts.CRDs, of.Chart(charts.CRDs), "--namespace="+install.Namespace, "--create-namespace", "--wait")
		install.AwaitServed(ctx, g, s)
		run(operator, values, verb, charts.Operator, of.Chart(charts.Operator), "--namespace="+namespace)
	}
	return way{
		install: func() { apply("install", previous) },
		upgrade: func() { apply("upgrade", next) },
		back: func() {
			run(operator, nil, "rollback", charts.Operator, "--namespace="+namespace)
			run(definitions, nil, "rollback", charts.CRDs, "--namespace="+install.Namespace)
		},
	}
}

// withClusterctl upgrades the provider. clusterctl has no way back but to remove it and to install the other version; the
// CustomResourceDefinitions stay.
func withClusterctl(ctx context.Context, t *testing.T, s *stack.Stack, previous, next install.Source) way {
	t.Helper()
	g := NewWithT(t)
	components, kubeconfig, target, variables := "addon-components.yaml", s.Kubeconfig(), install.Namespace, ""
	if s.Placement() == stack.InManagement {
		components, kubeconfig, target, variables = "addon-components-management.yaml", s.ManagementKubeconfig(), stack.ClusterNamespace, "KARPENTER_CLUSTER_NAME="+stack.ClusterName+" "
	}
	repository, guide := install.OpenClusterctlGuide(ctx, t, s, components)
	from := guide.Version(t, install.Published+`/(v[0-9.]+)/`)
	to := guide.Version(t, `upgrade apply --addon karpenter:(v[0-9.]+)`)
	run := func(command string) {
		t.Helper()
		guide.Execute(ctx, t, kubeconfig, variables+command)
	}
	definitions := func(version string) {
		t.Helper()
		release := install.Published + "/" + version
		guide.Execute(ctx, t, s.Kubeconfig(), "kubectl apply --server-side -f "+release+"/karpenter-crds.yaml -f "+release+"/karpenter-capi-crds.yaml")
	}
	return way{
		install: func() {
			repository.Release(t, previous, from)
			definitions(from)
			run("clusterctl init --core cluster-api --bootstrap - --control-plane -")
			// clusterctl waits forever if it finds its test of cert-manager while that is being deleted.
			g.Eventually(ctx, func(g Gomega) {
				tested := &corev1.Namespace{}
				g.Expect(s.Management.Get(ctx, client.ObjectKey{Name: "cert-manager-test"}, tested)).To(Satisfy(apierrors.IsNotFound))
			}).WithTimeout(time.Minute).WithPolling(install.Poll).Should(Succeed())
			run("clusterctl init --addon karpenter --target-namespace " + target)
			install.AwaitServed(ctx, g, s)
		},
		upgrade: func() {
			repository.Release(t, next, to)
			definitions(to)
			run("clusterctl upgrade apply --addon karpenter:" + to)
		},
		back: func() {
			run("clusterctl delete --addon karpenter")
			run("clusterctl init --addon karpenter:" + from + " --target-namespace " + target)
		},
	}
}
