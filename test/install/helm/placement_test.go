// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"context"
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/charts"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// Everything in one cluster.
func TestOneCluster(t *testing.T) {
	ctx, s := newStack(t, false)
	g := NewWithT(t)
	t.Run("every object is accepted", func(t *testing.T) { dryRun(ctx, t, s) })

	helm := &charts.Helm{Dir: t.TempDir(), Kubeconfig: s.Kubeconfig()}
	t.Run("wrong values are refused", func(t *testing.T) {
		for want, values := range map[string]charts.Values{
			"additional properties 'replicaCount' not allowed":                  {"replicaCount": 1},
			"at '/replicas': got string, want integer":                          {"replicas": "two"},
			"managementCluster.token is set, but with placement OneCluster the": {"managementCluster": charts.Values{"token": "t"}},
		} {
			_, err := helm.Run(ctx, values, "install", charts.Operator, charts.Chart(charts.Operator), "--namespace="+namespace)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
		}
	})
	t.Run("without CustomResourceDefinitions, the notes say so", func(t *testing.T) {
		printed, err := helm.Run(ctx, nil, "install", charts.Operator, charts.Chart(charts.Operator), "--dry-run=server", "--namespace="+namespace)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(printed).To(ContainSubstring("Install the chart karpenter-capi-crd"))
	})
	g.Expect(t.Failed()).To(BeFalse())
	lifecycle(ctx, t, s, openGuide(t), "One cluster", local(t))
}

// dryRun lets the API server judge every object of every values, without storing it.
func dryRun(ctx context.Context, t *testing.T, s *stack.Stack) {
	createPrometheusCRDs(ctx, t, s.Workload)
	ofOperator := &corev1.Namespace{}
	ofOperator.Name = namespace
	NewWithT(t).Expect(s.Workload.Create(ctx, ofOperator)).To(Succeed())
	check := func(t *testing.T, chart string, values charts.Values) {
		g := NewWithT(t)
		objects, err := (&charts.Helm{Dir: t.TempDir()}).Template(ctx, chart, namespace, chart, values)
		g.Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			// The kinds of the Prometheus operator are new, and known a moment later.
			g.Eventually(ctx, func() error {
				return s.Workload.Create(ctx, object.DeepCopy(), client.DryRunAll, client.FieldValidation("Strict"))
			}).Should(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
	}
	t.Run("CustomResourceDefinitions", func(t *testing.T) { check(t, charts.CRDs, nil) })
	for name, values := range charts.Matrix() {
		t.Run(name, func(t *testing.T) { check(t, charts.Operator, values) })
	}
}

// Cluster API in a cluster of its own. The operator is in the other one; with the identity that the chart makes in the
// management cluster it reaches the namespace of its Cluster there, and no more.
func TestTwoClusters(t *testing.T) {
	ctx, s := newStack(t, true)
	g := NewWithT(t)
	const section = "Two clusters"
	d := openGuide(t)
	notes := d.run(ctx, t, s.ManagementKubeconfig(), section, "helm install karpenter-capi", "placement=ManagementCluster")
	for _, key := range []string{"{{.data.token ", `{{index .data "ca.crt" `} {
		d.run(ctx, t, s.ManagementKubeconfig(), section, "kubectl", key)
	}
	// What helm prints says the same.
	for line := range strings.Lines(notes) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "kubectl ") {
			g.Expect(d.text).To(ContainSubstring("\n" + line + "\n"))
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.ManagementKubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	config = &rest.Config{Host: config.Host, BearerToken: d.read(t, "token"), TLSClientConfig: rest.TLSClientConfig{CAData: []byte(d.read(t, "ca.crt"))}}
	identity, err := client.New(config, client.Options{Scheme: s.Management.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(identity.List(ctx, &clusterv1.MachineList{}, client.InNamespace(stack.ClusterNamespace))).To(Succeed())
	g.Expect(identity.List(ctx, &clusterv1.MachineList{}, client.InNamespace("another"))).To(Satisfy(apierrors.IsForbidden))
	g.Expect(identity.List(ctx, &corev1.SecretList{}, client.InNamespace(stack.ClusterNamespace))).To(Satisfy(apierrors.IsForbidden))

	values := local(t)
	maps.Copy(values, charts.Values{"placement": "WorkloadCluster", "managementCluster": charts.Values{"server": config.Host}})
	lifecycle(ctx, t, s, d, section, values, "--set-file managementCluster.token=token", "--set-file managementCluster.certificateAuthority=ca.crt")
	d.run(ctx, t, s.ManagementKubeconfig(), "Uninstall", "helm uninstall karpenter-capi")
}
