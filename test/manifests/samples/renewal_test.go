// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The script of the sample's CronJob, with the rights of its ServiceAccount, writes kubeconfigs with tokens of the
// operator that expire. Both clusters are the same one here.
func TestTokenRenewal(t *testing.T) {
	objects := createAll(t, "token-renewal")
	job := &batchv1.CronJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[len(objects)-1].Object, job); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter-capi-system", Name: "karpenter-capi"}}
	if err := apiServer.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own := actingAs(t, dir, "system:serviceaccount:default:token-renewal")
	admin, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cluster := admin.Clusters[admin.Contexts[admin.CurrentContext].Cluster]
	authority := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(authority, cluster.CertificateAuthorityData, 0o600); err != nil {
		t.Fatal(err)
	}
	administrator := kubeconfig
	renew := func(kubeconfig string) ([]byte, error) {
		container := job.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
		command := exec.CommandContext(t.Context(), container.Command[0], append(container.Command[1:], container.Args...)...)
		command.Env = []string{"PATH=" + os.Getenv("KUBEBUILDER_ASSETS") + ":" + os.Getenv("PATH"), "KUBECONFIG=" + kubeconfig}
		for _, variable := range container.Env {
			command.Env = append(command.Env, variable.Name+"="+variable.Value)
		}
		// These are files of the Pod.
		command.Env = append(command.Env, "HOME="+dir, "SERVER="+cluster.Server, "CERTIFICATE_AUTHORITY="+authority, "WORKLOAD_KUBECONFIG="+administrator)
		return command.CombinedOutput()
	}
	var tokens []string
	for range 2 {
		if out, err := renew(own); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		tokens = append(tokens, expectToken(t))
	}
	if tokens[0] == tokens[1] {
		t.Error("the second renewal wrote the same token")
	}
	if out, err := renew(actingAs(t, dir, "system:serviceaccount:default:another")); err == nil {
		t.Errorf("another account renewed the token:\n%s", out)
	}
}

// actingAs returns a kubeconfig whose user acts as another one.
func actingAs(t *testing.T, dir, user string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	file := filepath.Join(dir, "as.kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// expectToken checks the Secret that the operator's Pods mount, and returns its token.
func expectToken(t *testing.T) string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := apiServer.Get(t.Context(), types.NamespacedName{Namespace: "karpenter-capi-system", Name: "management-cluster"}, secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	operator, err := client.New(config, client.Options{Scheme: apiServer.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	self := &authenticationv1.SelfSubjectReview{}
	if err := operator.Create(t.Context(), self); err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:karpenter-capi-system:karpenter-capi"; self.Status.UserInfo.Username != want {
		t.Errorf("the token is of %s, want %s", self.Status.UserInfo.Username, want)
	}
	if left := time.Until(expiry(t, config.BearerToken)); left < 23*time.Hour || left > 25*time.Hour {
		t.Errorf("the token expires after %s, want a day", left)
	}
	return config.BearerToken
}

// expiry returns when a token expires.
func expiry(t *testing.T, token string) time.Time {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatal("it is not a JSON Web Token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return time.Unix(claims.Exp, 0)
}
