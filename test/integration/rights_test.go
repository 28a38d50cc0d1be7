// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// The operator's ServiceAccount in config/default.
const operatorAccount = "system:serviceaccount:karpenter-capi-system:karpenter-capi-manager"

// grant applies the rights from the installation of the operator.
func (e *environment) grant(ctx context.Context) {
	GinkgoHelper()
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	manifests, err := exec.CommandContext(ctx, kubectl, "kustomize", filepath.Join("..", "..", "config", "default")).Output()
	Expect(err).NotTo(HaveOccurred())
	objects, err := charts.Decode(string(manifests))
	Expect(err).NotTo(HaveOccurred())
	rights := []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
	for _, object := range objects {
		if slices.Contains(rights, object.GetKind()) {
			Expect(e.client.Create(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
	}
}

// asOperator returns a configuration with only the rights of the operator's ServiceAccount.
func (e *environment) asOperator() *rest.Config {
	config := rest.CopyConfig(e.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorAccount, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return config
}

// forbidden reports whether the API server rejected a request because the client has no right to send it. Admission
// returns the same status.
func forbidden(response *http.Response) (bool, error) {
	if response.StatusCode != http.StatusForbidden {
		return false, nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte(operatorAccount)) && bytes.Contains(body, []byte(" cannot ")), nil
}

var _ = Describe("The operator's rights", func() {
	// If this were not rejected, no spec would show that the rights are sufficient.
	It("are limited, and a request beyond them is recorded", func(ctx SpecContext) {
		requests := &requestLog{}
		config := env.asOperator()
		config.Wrap(requests.wrap)
		operator, err := client.New(config, client.Options{Scheme: env.client.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect(operator.List(ctx, &corev1.SecretList{})).NotTo(Succeed())
		Expect(requests.since(0, func(r request) bool { return r.forbidden })).To(HaveLen(1))
	})
})
