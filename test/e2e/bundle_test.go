// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// expectBundle expects that the archive for a bug report has the objects of both clusters, that only objects are unread that no longer
// exist, and that nothing in it is the data of a Secret. The checks find problems: the templates of the test have some.
func expectBundle(ctx context.Context, t *testing.T, g *WithT, s *stack.Stack) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bug.tar.gz")
	var results any
	if err := ask(ctx, s, &results, "doctor", "--bundle", path); err != nil {
		g.Expect(err.Error()).To(BeEmpty())
	}
	archive, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())
	files, all := map[string]string{}, []byte{}
	for reader := tar.NewReader(unpacked); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(reader)
		g.Expect(err).NotTo(HaveOccurred())
		files[strings.TrimPrefix(header.Name, "karpenter-capi-bundle/")], all = string(content), append(all, content...)
	}
	for path, want := range map[string]string{
		"versions.yaml": "workload: v1.", "doctor.txt": "✓", "workload/NodeClaim.yaml": "kind: NodeClaim", "workload/Node.yaml": "kind: Node",
		"workload/Event.yaml": "kind: Event", "management/Cluster.yaml": "kind: Cluster", "management/Machine.yaml": "kind: Machine",
		"management/MachineDeployment.yaml": "kind: MachineDeployment",
	} {
		g.Expect(files).To(HaveKeyWithValue(path, ContainSubstring(want)))
	}
	for line := range strings.Lines(files["errors.txt"]) {
		g.Expect(line).To(Or(ContainSubstring("not found"), Equal("everything could be read\n")))
	}
	secrets := &corev1.SecretList{}
	g.Expect(s.Management.List(ctx, secrets)).To(Succeed())
	g.Expect(secrets.Items).NotTo(BeEmpty())
	for i := range secrets.Items {
		for key, value := range secrets.Items[i].Data {
			if len(value) > 32 { // shorter ones are formats
				g.Expect(bytes.Contains(all, value)).To(BeFalse(), "it has %s of Secret %s", key, secrets.Items[i].Name)
			}
		}
	}
}
