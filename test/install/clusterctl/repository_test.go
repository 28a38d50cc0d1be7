// SPDX-License-Identifier: Apache-2.0

//go:build install

package clusterctl

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/install"
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

// repositories is a folder with local repositories of clusterctl, and its configuration.
type repositories string

// openGuide opens the guide for a stack, with repositories that contain what it installs except for the addon provider.
func openGuide(ctx context.Context, t *testing.T, s *stack.Stack, components string) (repositories, *install.Guide) {
	t.Helper()
	repository := repositories(t.TempDir())
	repository.certManager(t)
	repository.clusterAPI(ctx, t, s)
	guide := install.OpenGuide(t, "clusterctl.md", func(command string) string {
		return strings.ReplaceAll(command, published, repository.addon())
	})
	// Fake kubelets only pretend to run a Pod.
	guide.Environment = []string{
		"GOPROXY=off", "XDG_CONFIG_HOME=" + repository.config(t, components), "KARPENTER_REPLICAS=0", "KARPENTER_ALLOWED_SECRETS=" + stack.BootstrapSecretName,
	}
	return repository, guide
}

// release creates a version of the addon provider, as it is released.
func (r repositories) release(t *testing.T, of source, version string) {
	t.Helper()
	out := filepath.Join(r.addon(), version)
	command := exec.Command(filepath.Join(of.dir, "hack", "release", "build.sh"), version, "registry.example/karpenter-capi:"+version, out)
	command.Env = append(os.Environ(), "KUBECTL="+filepath.Join(install.Binaries(), "kubectl"), "HELM=", "GOTOOLCHAIN=auto")
	said, err := command.CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s", said)
}

// addon is the repository of the addon provider.
func (r repositories) addon() string { return filepath.Join(string(r), "addon-karpenter") }

// config writes clusterctl's configuration with components of the addon provider, and returns the folder for its
// XDG_CONFIG_HOME.
func (r repositories) config(t *testing.T, components string) string {
	t.Helper()
	g := NewWithT(t)
	dir := filepath.Join(string(r), "config")
	g.Expect(os.MkdirAll(filepath.Join(dir, "cluster-api"), 0o755)).To(Succeed())
	content := fmt.Sprintf(`providers:
- {name: cluster-api, type: CoreProvider, url: "file://%[1]s/cluster-api/%[2]s/core-components.yaml"}
- {name: karpenter, type: AddonProvider, url: "file://%[1]s/addon-karpenter/latest/%[4]s"}
cert-manager: {version: %[3]s, url: "file://%[1]s/cert-manager/%[3]s/cert-manager.yaml"}
CLUSTERCTL_DISABLE_VERSIONCHECK: "true"
`, r, clusterAPIVersion(t), certManagerVersion, components)
	g.Expect(os.WriteFile(filepath.Join(dir, "cluster-api", "clusterctl.yaml"), []byte(content), 0o600)).To(Succeed())
	return dir
}

// certManager creates the repository of the substitute for cert-manager.
func (r repositories) certManager(t *testing.T) {
	t.Helper()
	content := fmt.Sprintf(certManagerCRD, "issuer", "Issuer") + fmt.Sprintf(certManagerCRD, "certificate", "Certificate")
	write(t, filepath.Join(string(r), "cert-manager", certManagerVersion, "cert-manager.yaml"), []byte(content))
}

// clusterAPI creates the repository of the core provider: Cluster API's own kustomization, with the changes that doc.go
// describes.
func (r repositories) clusterAPI(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	module := goList(t, "{{.Dir}}", "sigs.k8s.io/cluster-api")
	rendered, err := exec.CommandContext(ctx, filepath.Join(install.Binaries(), "kubectl"), "kustomize", filepath.Join(module, "core", "config", "default")).Output()
	g.Expect(err).NotTo(HaveOccurred())
	components := &bytes.Buffer{}
	objects, err := charts.Decode(string(rendered))
	g.Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		g.Expect(standIn(ctx, s, object)).To(Succeed(), object.GetName())
		content, err := yaml.Marshal(object)
		g.Expect(err).NotTo(HaveOccurred())
		_, _ = fmt.Fprintf(components, "---\n%s", content)
	}
	metadata, err := os.ReadFile(filepath.Join(module, "metadata.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
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
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(file, content, 0o644)).To(Succeed())
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
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(out))
}
