// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/charts"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// Everything in one cluster.
func TestOneCluster(t *testing.T) {
	ctx, s := newStack(t, false)

	// Before anything is installed: the API server accepts every object, whatever the values are.
	g := NewWithT(t)
	createPrometheusCRDs(ctx, t, s.Workload)
	ofOperator := &corev1.Namespace{}
	ofOperator.Name = namespace
	g.Expect(s.Workload.Create(ctx, ofOperator)).To(Succeed())
	helm := &charts.Helm{Dir: t.TempDir()}
	dryRun := func(chart string, values charts.Values) {
		objects, err := helm.Template(ctx, chart, namespace, chart, values)
		g.Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			err := s.Workload.Create(ctx, object, client.DryRunAll, client.FieldValidation("Strict"))
			g.Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
		}
	}
	dryRun(charts.CRDs, nil)
	for name, values := range charts.Matrix() {
		t.Run(name, func(*testing.T) { dryRun(charts.Operator, values) })
	}

	lifecycle(ctx, t, s, local(t, charts.Values{}))
}

// Cluster API in a cluster of its own. The operator is in the other one; with the identity that the chart makes in the
// management cluster it reaches the namespace of its Cluster there, and no more.
func TestTwoClusters(t *testing.T) {
	ctx, s := newStack(t, true)
	g := NewWithT(t)
	management := &charts.Helm{Dir: t.TempDir(), Kubeconfig: s.ManagementKubeconfig()}
	notes := run(ctx, t, management, charts.Values{
		"placement": "ManagementCluster", "settings": charts.Values{"clusterNamespace": stack.ClusterNamespace},
	}, "install", charts.Operator, charts.Chart(charts.Operator), "--create-namespace")

	// The notes say how to get what the operator needs.
	dir := t.TempDir()
	for line := range strings.Lines(notes) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "kubectl ") {
			command := exec.CommandContext(ctx, "bash", "-c", line)
			command.Dir = dir
			command.Env = append(os.Environ(), "KUBECONFIG="+s.ManagementKubeconfig(), "KUBECACHEDIR="+dir,
				"PATH="+filepath.Join(charts.Root(), "bin")+":"+os.Getenv("PATH"))
			printed, err := command.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), "%s: %s", line, printed)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		g.Expect(err).NotTo(HaveOccurred(), notes)
		return string(text)
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.ManagementKubeconfig())
	g.Expect(err).NotTo(HaveOccurred())

	lifecycle(ctx, t, s, local(t, charts.Values{
		"placement": "WorkloadCluster",
		"managementCluster": charts.Values{
			"server": config.Host, "certificateAuthority": read("ca.crt"), "token": read("token"),
		},
	}))
	run(ctx, t, management, nil, "uninstall", charts.Operator)
}
