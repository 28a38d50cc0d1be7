// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/charts"
)

// account is a ServiceAccount of the operator with a token.
type account struct {
	name, token string
}

// newAccount returns an account with all rights of the charts in both clusters except one, until the spec ends.
func (e *environment) newAccount(ctx context.Context, name string, lacks lack) *account {
	GinkgoHelper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster.Namespace, Name: name}}
	Expect(e.client.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { e.delete(ctx, object) })
	request := &authenticationv1.TokenRequest{}
	Expect(e.client.SubResource("token").Create(ctx, object, request)).To(Succeed())
	a := &account{name: name, token: request.Status.Token}
	for file, namespace := range map[string]string{"workload": "", "karpenter-core": "", "management": e.cluster.Namespace, "management-cluster": ""} {
		rules, err := charts.Rules(file)
		Expect(err).NotTo(HaveOccurred())
		a.grant(ctx, file, namespace, lacks.from(rules))
	}
	return a
}

// user returns the name of the account as the API server knows it.
func (a *account) user() string { return "system:serviceaccount:" + served.Namespace + ":" + a.name }

// grant gives rights in a namespace, or in the whole cluster, until the spec ends.
func (a *account) grant(ctx context.Context, role, namespace string, rules []rbacv1.PolicyRule) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: a.name + "-" + role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: served.Namespace, Name: a.name}}
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}},
	}
	if namespace != "" {
		objects = []client.Object{
			&rbacv1.Role{ObjectMeta: meta, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}},
		}
	}
	for _, object := range objects {
		Expect(env.client.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { env.delete(ctx, object) })
	}
}

// kubeconfig returns a kubeconfig of the account for a server.
func (a *account) kubeconfig(server string) string {
	GinkgoHelper()
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server, CertificateAuthorityData: env.config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: a.token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
