// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// certManagerVersion is the version that clusterctl requests; certManagerCRD replaces it.
const certManagerVersion = "v1.21.1"

// certManagerCRD is what the test has of cert-manager for each kind.
const certManagerCRD = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: %[2]s, plural: %[1]ss}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// Published is where the guide for clusterctl gets a release from.
const Published = "https://github.com/karpenter-capi/karpenter-capi/releases/download"

// Repositories is a folder with local repositories of clusterctl, and its configuration.
type Repositories string

// OpenClusterctlGuide opens the guide for clusterctl on a stack, with repositories that contain what it installs except for the addon provider.
func OpenClusterctlGuide(ctx context.Context, t *testing.T, s *stack.Stack, components string) (Repositories, *Guide) {
	t.Helper()
	repository := Repositories(t.TempDir())
	repository.certManager(t)
	repository.clusterAPI(ctx, t, s)
	guide := OpenGuide(t, "clusterctl.md", func(command string) string {
		return strings.ReplaceAll(command, Published, repository.addon())
	})
	// Fake kubelets only pretend to run a Pod.
	guide.Environment = []string{
		"GOPROXY=off", "XDG_CONFIG_HOME=" + repository.config(t, components), "KARPENTER_REPLICAS=0", "KARPENTER_ALLOWED_SECRETS=" + stack.BootstrapSecretName,
	}
	return repository, guide
}

// Release creates a version of the addon provider, as it is released.
func (r Repositories) Release(t *testing.T, of Source, version string) {
	t.Helper()
	out := filepath.Join(r.addon(), version)
	command := exec.Command(filepath.Join(of.Dir, "hack", "release", "build.sh"), version, "registry.example/karpenter-capi:"+version, out)
	command.Env = append(os.Environ(), "KUBECTL="+filepath.Join(Binaries(), "kubectl"), "HELM=", "GOTOOLCHAIN=auto")
	said, err := command.CombinedOutput()
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred(), "%s", said)
}

// addon is the repository of the addon provider.
func (r Repositories) addon() string { return filepath.Join(string(r), "addon-karpenter") }

// config writes clusterctl's configuration with components of the addon provider, and returns the folder for its
// XDG_CONFIG_HOME.
func (r Repositories) config(t *testing.T, components string) string {
	t.Helper()
	g := gomega.NewWithT(t)
	dir := filepath.Join(string(r), "config")
	g.Expect(os.MkdirAll(filepath.Join(dir, "cluster-api"), 0o755)).To(gomega.Succeed())
	content := fmt.Sprintf(`providers:
- {name: cluster-api, type: CoreProvider, url: "file://%[1]s/cluster-api/%[2]s/core-components.yaml"}
- {name: karpenter, type: AddonProvider, url: "file://%[1]s/addon-karpenter/latest/%[4]s"}
cert-manager: {version: %[3]s, url: "file://%[1]s/cert-manager/%[3]s/cert-manager.yaml"}
CLUSTERCTL_DISABLE_VERSIONCHECK: "true"
`, r, clusterAPIVersion(t), certManagerVersion, components)
	g.Expect(os.WriteFile(filepath.Join(dir, "cluster-api", "clusterctl.yaml"), []byte(content), 0o600)).To(gomega.Succeed())
	return dir
}

// certManager creates the repository of the substitute for cert-manager.
func (r Repositories) certManager(t *testing.T) {
	t.Helper()
	content := fmt.Sprintf(certManagerCRD, "issuer", "Issuer") + fmt.Sprintf(certManagerCRD, "certificate", "Certificate")
	write(t, filepath.Join(string(r), "cert-manager", certManagerVersion, "cert-manager.yaml"), []byte(content))
}

// clusterAPI creates the repository of the core provider: Cluster API's own kustomization, with the changes that doc.go
// describes.
func (r Repositories) clusterAPI(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := gomega.NewWithT(t)
	module := goList(t, "{{.Dir}}", "sigs.k8s.io/cluster-api")
	rendered, err := exec.CommandContext(ctx, filepath.Join(Binaries(), "kubectl"), "kustomize", filepath.Join(module, "core", "config", "default")).Output()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	components := &bytes.Buffer{}
	objects, err := charts.Decode(string(rendered))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for _, object := range objects {
		g.Expect(standIn(ctx, s, object)).To(gomega.Succeed(), object.GetName())
		content, err := yaml.Marshal(object)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		_, _ = fmt.Fprintf(components, "---\n%s", content)
	}
	metadata, err := os.ReadFile(filepath.Join(module, "metadata.yaml"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	dir := filepath.Join(string(r), "cluster-api", clusterAPIVersion(t))
	write(t, filepath.Join(dir, "core-components.yaml"), components.Bytes())
	write(t, filepath.Join(dir, "metadata.yaml"), metadata)
}

// standIn changes a component of Cluster API so that the stack's process remains Cluster API: the webhooks and
// conversions of the stack stay.
func standIn(ctx context.Context, s *stack.Stack, object *unstructured.Unstructured) error {
	kept := map[string][]string{
		"CustomResourceDefinition":       {"spec", "conversion"},
		"MutatingWebhookConfiguration":   {"webhooks"},
		"ValidatingWebhookConfiguration": {"webhooks"},
	}
	if object.GetKind() == "Deployment" {
		return unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas")
	}
	path, ok := kept[object.GetKind()]
	if !ok {
		return nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := s.Management.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	value, _, err := unstructured.NestedFieldCopy(live.Object, path...)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(object.Object, value, path...)
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	g := gomega.NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(gomega.Succeed())
	g.Expect(os.WriteFile(file, content, 0o644)).To(gomega.Succeed())
}

func clusterAPIVersion(t *testing.T) string {
	t.Helper()
	return goList(t, "{{.Version}}", "sigs.k8s.io/cluster-api")
}

func goList(t *testing.T, format, module string) string {
	t.Helper()
	command := exec.Command("go", "list", "-m", "-f", format, module)
	command.Env = append(os.Environ(), "GOTOOLCHAIN=auto")
	out, err := command.Output()
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	return strings.TrimSpace(string(out))
}
