// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rights"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// An operator that has tokens, like a Pod, serves metrics and profiles only to those that the API server admits. Neither
// these nor logs, events and conditions contain a token or a key, also after requests that failed.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{Placement: stack.InWorkload, WithoutOperator: true})
	g := NewWithT(t)
	ports, err := stack.FreePorts(1)
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	workload, management := filepath.Join(dir, "workload"), filepath.Join(dir, "management")
	secrets := append(keys(g, s.Kubeconfig()), keys(g, s.ManagementKubeconfig())...)
	secrets = append(secrets, writeToken(ctx, g, s.Workload, s.Kubeconfig(), workload), writeToken(ctx, g, s.Management, s.ManagementKubeconfig(), management))
	stored, err := os.ReadFile(workload)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(leaks(stored, secrets)).NotTo(BeEmpty(), "what the test finds in a kubeconfig")

	log := filepath.Join(s.LogDir(), "operator.log")
	operator := runOperator(ctx, t, s, "operator", []string{"KUBECONFIG=" + workload},
		"--cluster-api-kubeconfig="+management, "--insecure-diagnostics=false", "--enable-profiling", "--log-level=debug", fmt.Sprintf("--metrics-port=%d", ports[0]))
	create(ctx, g, s, kinds.MachineDeployment, "general.yaml")
	create(ctx, g, s, kinds.MachineDeployment, "general-pods.yaml")
	g.Eventually(ctx, func() (int, error) { return runningPods(ctx, s, "general") }).
		WithTimeout(2*time.Minute).WithPolling(poll).Should(Equal(generalPods), "Pods that run")

	reader, profiler, stranger := newAccount(ctx, g, s, "reader"), newAccount(ctx, g, s, "profiler"), newAccount(ctx, g, s, "stranger")
	granted, err := rights.Read(charts.Root())
	g.Expect(err).NotTo(HaveOccurred())
	bind(ctx, g, s, "reader", granted["metrics-reader-role"])
	bind(ctx, g, s, "profiler", []rbacv1.PolicyRule{{NonResourceURLs: []string{"/debug/pprof/*"}, Verbs: []string{"get"}}})
	const invalid = "a-token-of-another-cluster"
	secrets = append(secrets, reader, profiler, stranger, invalid)
	endpoint := fmt.Sprintf("https://127.0.0.1:%d", ports[0])
	for _, tc := range []struct {
		name, token, path string
		want              int
	}{
		{"no token", "", "/metrics", http.StatusUnauthorized},
		// The filter of controller-runtime reports an error of the review in this way, as in Cluster API's managers.
		{"an invalid token", invalid, "/metrics", http.StatusInternalServerError},
		{"no right", stranger, "/metrics", http.StatusForbidden},
		{"the right to read metrics", reader, "/metrics", http.StatusOK},
		{"the right to read metrics, for profiles", reader, "/debug/pprof/cmdline", http.StatusForbidden},
		{"the right to read profiles, for metrics", profiler, "/metrics", http.StatusForbidden},
	} {
		status, body := get(ctx, g, endpoint+tc.path, tc.token)
		g.Expect(status).To(Equal(tc.want), tc.name)
		g.Expect(leaks(body, secrets)).To(BeEmpty(), tc.name)
	}

	g.Expect(s.StopComponent(ctx, stack.ManagementPrefix+stack.APIServer)).To(Succeed())
	scalePods(ctx, g, s, "general", 2*generalPods)
	g.Eventually(ctx, func() (string, error) {
		log, err := os.ReadFile(log)
		return string(log), err
	}).WithTimeout(time.Minute).WithPolling(poll).Should(ContainSubstring("connection refused"), "the operator's log")
	g.Expect(s.StartComponent(ctx, stack.ManagementPrefix+stack.APIServer)).To(Succeed())
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap"} {
		status, body := get(ctx, g, endpoint+path, profiler)
		g.Expect(status).To(Equal(http.StatusOK), path)
		g.Expect(leaks(unzipped(body), secrets)).To(BeEmpty(), path)
	}
	for _, list := range []client.ObjectList{&corev1.EventList{}, &karpv1.NodeClaimList{}, &karpv1.NodePoolList{}, &v1alpha1.KarpenterMachineTemplateList{}, &corev1.NodeList{}} {
		expectNoLeak(ctx, g, s.Workload, list, secrets)
	}
	for _, list := range []client.ObjectList{&corev1.EventList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineList{}, &clusterv1.ClusterList{}} {
		expectNoLeak(ctx, g, s.Management, list, secrets)
	}
	operator.signal(g, kill)
	logged, err := os.ReadFile(log)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(leaks(logged, secrets)).To(BeEmpty(), "the operator's log")
}

// keys returns the private keys in a kubeconfig.
func keys(g *WithT, kubeconfig string) []string {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	var keys []string
	for _, user := range config.AuthInfos {
		g.Expect(user.ClientKeyData).NotTo(BeEmpty())
		// The line in the middle is not the same in all keys.
		lines := bytes.Split(bytes.TrimSpace(user.ClientKeyData), []byte("\n"))
		keys = append(keys, string(lines[len(lines)/2]), base64.StdEncoding.EncodeToString(user.ClientKeyData))
	}
	return keys
}

// newToken returns a token of a service account.
func newToken(ctx context.Context, g *WithT, cluster client.Client, name string) string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: name}}
	g.Expect(cluster.Create(ctx, account)).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	g.Expect(cluster.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// newAccount returns a token of a new service account in the workload cluster, in which the operator runs.
func newAccount(ctx context.Context, g *WithT, s *stack.Stack, name string) string {
	return newToken(ctx, g, s.Workload, name)
}

// writeToken writes a kubeconfig with a token of the operator instead of an administrator's key, and returns the token.
func writeToken(ctx context.Context, g *WithT, cluster client.Client, from, to string) string {
	token := newToken(ctx, g, cluster, stack.Operator)
	config, err := clientcmd.LoadFromFile(from)
	g.Expect(err).NotTo(HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: token}
	}
	g.Expect(clientcmd.WriteToFile(*config, to)).To(Succeed())
	return token
}

// bind gives a service account rights in the workload cluster.
func bind(ctx context.Context, g *WithT, s *stack.Stack, account string, rules []rbacv1.PolicyRule) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: rules}
	g.Expect(s.Workload.Create(ctx, role)).To(Succeed())
	g.Expect(s.Workload.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: stack.ClusterNamespace, Name: account}},
	})).To(Succeed())
}

// get returns the response to a request with a token.
func get(ctx context.Context, g *WithT, url, token string) (int, []byte) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	g.Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The operator signs its certificate itself.
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // See above.
	response, err := insecure.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close() //nolint:errcheck // It is only read.
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, body
}

// unzipped returns the content of a profile, which can be compressed.
func unzipped(profile []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(profile))
	if err != nil {
		return profile
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		return profile
	}
	return content
}

// expectNoLeak checks objects of a kind with their conditions.
func expectNoLeak(ctx context.Context, g *WithT, cluster client.Client, list client.ObjectList, secrets []string) {
	g.Expect(cluster.List(ctx, list)).To(Succeed())
	text, err := json.Marshal(list)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(leaks(text, secrets)).To(BeEmpty(), "%T", list)
}

// leaks returns the beginnings of the secrets that a text contains.
func leaks(text []byte, secrets []string) []string {
	var found []string
	for _, secret := range secrets {
		if bytes.Contains(text, []byte(secret)) {
			found = append(found, secret[:8])
		}
	}
	return found
}
