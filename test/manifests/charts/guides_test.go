// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// The guide has the command that checks what an uninstall leaves behind for the Deployment of each placement: of each
// release that the installation guide installs, and of clusterctl.
func TestUninstallNamesDeployments(t *testing.T) {
	guide := page(t, "guides", "uninstall.md")
	expect := func(namespace, deployment string) {
		if command := fmt.Sprintf("kubectl -n %s exec deploy/%s -- /karpenter-capi uninstall-check\n", namespace, deployment); !strings.Contains(guide, command) {
			t.Errorf("the guide lacks %q", command)
		}
	}
	install := regexp.MustCompile(`(?m)^helm install (\S+) \S+/charts/karpenter-capi --version \S+ --namespace (\S+)(.*)$`)
	installs := install.FindAllStringSubmatch(page(t, "installation", "helm.md"), -1)
	for _, command := range installs {
		if strings.Contains(command[3], "placement=Identity") {
			continue // it has no Deployment
		}
		rendered, err := newHelm(t).Template(t.Context(), command[1], command[2], Operator, nil)
		if err != nil {
			t.Fatal(err)
		}
		deployment := the[appsv1.Deployment](t, rendered, "Deployment")
		expect(deployment.Namespace, deployment.Name)
	}
	if len(installs) < 3 {
		t.Errorf("the guide installs %d releases, want one for each placement", len(installs))
	}
	clusterctl := regexp.MustCompile("The operator is the Deployment `(\\S+)` in the namespace `(\\S+)`").FindStringSubmatch(page(t, "installation", "clusterctl.md"))
	if clusterctl == nil {
		t.Fatal("the guide for clusterctl names no Deployment")
	}
	expect(clusterctl[2], clusterctl[1])
}

// page returns the content of a page of docs.
func page(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{Root(), "docs"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
