// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/install"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// published is where the guide gets the charts from. The test gets them from this repository.
var published = regexp.MustCompile(`oci://ghcr\.io/karpenter-capi/charts/(\S+) --version \S+`)

func openGuide(t *testing.T) *install.Guide {
	t.Helper()
	return install.OpenGuide(t, "helm.md", func(command string) string {
		return published.ReplaceAllStringFunc(command, func(chart string) string {
			return charts.Chart(published.FindStringSubmatch(chart)[1])
		})
	})
}

// local are the values with which the operator serves the stack's Cluster.
func local() charts.Values {
	return charts.Values{"settings": charts.Values{
		"clusterName": stack.ClusterName, "clusterNamespace": stack.ClusterNamespace, "allowedSecrets": []string{stack.BootstrapSecretName},
	}}
}

// installOperator installs the operator with the command of a section of the guide that contains all parts.
func installOperator(ctx context.Context, t *testing.T, s *stack.Stack, d *install.Guide, section string, parts ...string) string {
	t.Helper()
	return d.Run(ctx, t, s.Kubeconfig(), d.Command(t, section, "helm install karpenter-capi", append(parts, "--values values.yaml")...))
}

// read returns a file that a command of the guide has written.
func read(t *testing.T, d *install.Guide, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.Dir, name))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// Everything in one cluster.
func TestOneCluster(t *testing.T) {
	ctx, s := install.NewStack(t, stack.Joined)
	g := NewWithT(t)
	t.Run("every object is accepted", func(t *testing.T) { dryRun(ctx, t, s) })

	helm := &charts.Helm{Dir: t.TempDir(), Kubeconfig: s.Kubeconfig()}
	t.Run("wrong values are rejected", func(t *testing.T) {
		for want, values := range map[string]charts.Values{
			"additional properties 'replicaCount' not allowed":                  {"replicaCount": 1},
			"at '/replicas': got string, want integer":                          {"replicas": "two"},
			"managementCluster.token is set, but with placement OneCluster the": {"managementCluster": charts.Values{"token": "t"}},
		} {
			_, err := helm.Run(ctx, values, "install", charts.Operator, charts.Chart(charts.Operator), "--namespace="+install.Namespace)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
		}
	})
	t.Run("the notes report missing CustomResourceDefinitions", func(t *testing.T) {
		printed, err := helm.Run(ctx, nil, "install", charts.Operator, charts.Chart(charts.Operator), "--dry-run=server", "--namespace="+install.Namespace)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(printed).To(ContainSubstring("Install the chart karpenter-capi-crd"))
	})
	g.Expect(t.Failed()).To(BeFalse())
	d := openGuide(t)
	operator := func() string { return installOperator(ctx, t, s, d, "One cluster") }
	lifecycle(ctx, t, s, d, "One cluster", local(), operator, operator)
}

// dryRun lets the API server check every object of every values file, without storing it. It has the
// CustomResourceDefinitions meanwhile, because some values create objects of these kinds.
func dryRun(ctx context.Context, t *testing.T, s *stack.Stack) {
	createPrometheusCRDs(ctx, t, s.Workload)
	ofOperator := &corev1.Namespace{}
	ofOperator.Name = charts.MatrixNamespace
	NewWithT(t).Expect(s.Workload.Create(ctx, ofOperator)).To(Succeed())
	check := func(t *testing.T, chart string, values charts.Values) {
		g := NewWithT(t)
		objects, err := (&charts.Helm{Dir: t.TempDir()}).Template(ctx, chart, charts.MatrixNamespace, chart, values)
		g.Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			// The kinds of the Prometheus operator are new, and served only after some time.
			g.Eventually(ctx, func() error {
				return s.Workload.Create(ctx, object.DeepCopy(), client.DryRunAll, client.FieldValidation("Strict"))
			}).WithTimeout(time.Minute).Should(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
	}
	t.Run("CustomResourceDefinitions", func(t *testing.T) { check(t, charts.CRDs, nil) })
	definitions, err := (&charts.Helm{Dir: t.TempDir()}).Template(ctx, charts.CRDs, charts.MatrixNamespace, charts.CRDs, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, definition := range definitions {
		NewWithT(t).Expect(s.Workload.Create(ctx, definition)).To(Succeed())
		defer func() {
			NewWithT(t).Expect(s.Workload.Delete(ctx, definition)).To(Succeed())
			NewWithT(t).Eventually(ctx, func() error { return s.Workload.Get(ctx, client.ObjectKeyFromObject(definition), definition) }).
				WithTimeout(time.Minute).Should(Satisfy(apierrors.IsNotFound))
		}()
	}
	for name, values := range charts.Matrix() {
		t.Run(name, func(t *testing.T) { check(t, charts.Operator, values) })
	}
}

// Cluster API in a separate cluster. The operator is in the other one; with the identity that the chart creates in the
// management cluster it can access the namespace of its Cluster there, and nothing else.
func TestTwoClusters(t *testing.T) {
	ctx, s := install.NewStack(t, stack.InWorkload)
	g := NewWithT(t)
	const section = "Two clusters"
	d := openGuide(t)
	managed := func(section, begin string, parts ...string) string {
		t.Helper()
		return d.Run(ctx, t, s.ManagementKubeconfig(), d.Command(t, section, begin, parts...))
	}
	notes := managed(section, "helm install karpenter-capi", "placement=Identity")
	for _, key := range []string{"create token", "kube-root-ca.crt"} {
		managed(section, "kubectl", key)
	}
	// The output of helm has the same command.
	for line := range strings.Lines(notes) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "kubectl ") {
			g.Expect(d.Text).To(ContainSubstring("\n" + line + "\n"))
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.ManagementKubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	config = &rest.Config{Host: config.Host, BearerToken: read(t, d, "token"), TLSClientConfig: rest.TLSClientConfig{CAData: []byte(read(t, d, "ca.crt"))}}
	identity, err := client.New(config, client.Options{Scheme: s.Management.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(identity.List(ctx, &clusterv1.MachineList{}, client.InNamespace(stack.ClusterNamespace))).To(Succeed())
	g.Expect(identity.List(ctx, &clusterv1.MachineList{}, client.InNamespace("another"))).To(Satisfy(apierrors.IsForbidden))
	g.Expect(identity.List(ctx, &corev1.SecretList{}, client.InNamespace(stack.ClusterNamespace))).To(Satisfy(apierrors.IsForbidden))

	values := local()
	maps.Copy(values, charts.Values{"placement": "WorkloadCluster", "managementCluster": charts.Values{"server": config.Host}})
	operator := func() string {
		return installOperator(ctx, t, s, d, section, "--set-file managementCluster.token=token", "--set-file managementCluster.certificateAuthority=ca.crt")
	}
	// A user who already has a kubeconfig puts it in a Secret.
	again := func() string {
		kubeconfig := api.NewConfig()
		kubeconfig.Clusters["management"] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		kubeconfig.AuthInfos["operator"] = &api.AuthInfo{Token: config.BearerToken}
		kubeconfig.Contexts["operator"] = &api.Context{Cluster: "management", AuthInfo: "operator"}
		kubeconfig.CurrentContext = "operator"
		g.Expect(clientcmd.WriteToFile(*kubeconfig, filepath.Join(d.Dir, "management.kubeconfig"))).To(Succeed())
		d.Run(ctx, t, s.Kubeconfig(), d.Command(t, section, "kubectl", "create secret"))
		values["managementCluster"] = charts.Values{"existingSecret": "management-cluster"}
		write(t, d, values)
		return installOperator(ctx, t, s, d, "One cluster")
	}
	lifecycle(ctx, t, s, d, section, values, operator, again)
	managed("Uninstall", "helm uninstall karpenter-capi")
}
