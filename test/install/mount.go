// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// mount replaces a file that a Pod has from a Secret.
type mount struct {
	secret    client.ObjectKey
	key, file string
}

// mountOf returns what replaces the file that a Pod of the Deployment has at a path.
func mountOf(g gomega.Gomega, of *appsv1.Deployment, path, dir string) mount {
	pod := &of.Spec.Template.Spec
	var found []mount
	for _, at := range pod.Containers[0].VolumeMounts {
		within, ok := strings.CutPrefix(path, at.MountPath+"/")
		for _, volume := range pod.Volumes {
			if !ok || volume.Name != at.Name {
				continue
			}
			for _, item := range volume.Secret.Items {
				if item.Path == within {
					secret := client.ObjectKey{Namespace: of.Namespace, Name: volume.Secret.SecretName}
					found = append(found, mount{secret: secret, key: item.Key, file: filepath.Join(dir, "mounted")})
				}
			}
		}
	}
	g.Expect(found).To(gomega.HaveLen(1), "files of the Pod at %s", path)
	return found[0]
}

// write writes what the Secret contains now. The file changes at once, as with a kubelet.
func (m mount) write(ctx context.Context, g gomega.Gomega, s *stack.Stack) {
	secret := &corev1.Secret{}
	g.Expect(home(s).Get(ctx, m.secret, secret)).To(gomega.Succeed())
	g.Expect(secret.Data).To(gomega.HaveKey(m.key))
	g.Expect(os.WriteFile(m.file+".new", secret.Data[m.key], 0o600)).To(gomega.Succeed())
	g.Expect(os.Rename(m.file+".new", m.file)).To(gomega.Succeed())
}

// Remount brings what the Secrets of the Pod contain now into its files, as the kubelet does within about a minute.
func (o *Operator) Remount(ctx context.Context, g gomega.Gomega, s *stack.Stack) {
	for _, m := range o.mounts {
		m.write(ctx, g, s)
	}
}
