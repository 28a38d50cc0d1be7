// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// What has the form of a credential is replaced, and what only looks like one stays.
func TestScrub(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a JSON Web Token":             {"token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl.", "token (left out)."},
		"PEM":                          {"a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b", "a (left out) b"},
		"PEM whose end is missing":     {"a -----BEGIN CERTIFICATE-----\nMIIE\nMIIF", "a (left out)"},
		"PEM in base64":                {"ca: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t=", "ca: (left out)"},
		"a token of kubeadm":           {"kubeadm join --token abcdef.0123456789abcdef", "kubeadm join --token (left out)"},
		"a header":                     {"Authorization: Bearer opaque-token-1", "Authorization: Bearer (left out)"},
		"a URL with a password":        {"dial https://jane:pass@example.com:6443/a", "dial https://(left out)@example.com:6443/a"},
		"a named password":             {`{"password":"x1","a":1} passwd=x2 client_secret: x3`, `{"password":"(left out)","a":1} passwd=(left out) client_secret: (left out)`},
		"a URL":                        {"https://example.com:6443/a@b", "https://example.com:6443/a@b"},
		"the name of a Secret":         {"Secret prod-kubeconfig of namespace clusters, dataSecretName: m-1", "Secret prod-kubeconfig of namespace clusters, dataSecretName: m-1"},
		"versions, IDs and host names": {"v1.36.3 aws:///us-east-1a/i-0123456789abcdef node.example.internal 10.0.0.1", "v1.36.3 aws:///us-east-1a/i-0123456789abcdef node.example.internal 10.0.0.1"},
	} {
		if got := scrubValue(tc.text); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	const lines = "one\n-----BEGIN CERTIFICATE-----\\nMIIE\nthree\n"
	if got, want := string(scrubLines([]byte(lines))), "one\n(left out)\nthree\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The durations of Karpenter's objects are written as users write them.
func TestDurations(t *testing.T) {
	b := newBundle(metav1.Now().Time)
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("Never")
	pool.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("720h")
	b.add("a", whole, pool)
	for _, want := range []string{"consolidateAfter: Never\n", "expireAfter: 720h\n"} {
		if got := string(b.content()["a/NodePool.yaml"]); !strings.Contains(got, want) {
			t.Errorf("got %s, want %q", got, want)
		}
	}
}

// No document has managed fields or what kubectl apply repeats, and it has its kind.
func TestDocuments(t *testing.T) {
	b := newBundle(metav1.Now().Time)
	b.add("a", whole, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "node-1", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}})
	const want = `apiVersion: v1
kind: Node
metadata:
  annotations:
    a: b
  name: node-1
spec: {}
status:
  daemonEndpoints:
    kubeletEndpoint:
      Port: 0
  nodeInfo:
    architecture: ""
    bootID: ""
    containerRuntimeVersion: ""
    kernelVersion: ""
    kubeProxyVersion: ""
    kubeletVersion: ""
    machineID: ""
    operatingSystem: ""
    osImage: ""
    systemUUID: ""
`
	if got := string(b.content()["a/Node.yaml"]); got != want {
		t.Errorf("got %s", got)
	}
}
