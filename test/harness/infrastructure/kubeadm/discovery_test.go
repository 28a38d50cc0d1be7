// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstreamv1beta4"
)

const endpoint = "127.0.0.1:6443"

func TestCheckServer(t *testing.T) {
	chain, _, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(chain)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	hash := "sha256:" + hex.EncodeToString(sum[:])
	for name, tc := range map[string]struct {
		discovery   upstreamv1beta4.BootstrapTokenDiscovery
		authorities []byte
		wantError   string
	}{
		"the right one":       {upstreamv1beta4.BootstrapTokenDiscovery{APIServerEndpoint: endpoint, CACertHashes: []string{"sha256:00", hash}}, chain, ""},
		"not checked":         {upstreamv1beta4.BootstrapTokenDiscovery{APIServerEndpoint: endpoint, UnsafeSkipCAVerification: true}, nil, ""},
		"another authority":   {upstreamv1beta4.BootstrapTokenDiscovery{APIServerEndpoint: endpoint, CACertHashes: []string{"sha256:00"}}, chain, "none of discovery.bootstrapToken.caCertHashes"},
		"no authority":        {upstreamv1beta4.BootstrapTokenDiscovery{APIServerEndpoint: endpoint, CACertHashes: []string{hash}}, nil, "none of discovery.bootstrapToken.caCertHashes"},
		"another API server":  {upstreamv1beta4.BootstrapTokenDiscovery{APIServerEndpoint: "10.0.0.1:6443", CACertHashes: []string{hash}}, chain, "the machine looks for it at 10.0.0.1:6443"},
		"a broken authority":  {upstreamv1beta4.BootstrapTokenDiscovery{APIServerEndpoint: endpoint, CACertHashes: []string{hash}}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), "reading the authority"},
		"the second of these": {upstreamv1beta4.BootstrapTokenDiscovery{APIServerEndpoint: endpoint, CACertHashes: []string{hash}}, append(otherCertificate(t), chain...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			expectError(t, (&Join{Discovery: tc.discovery}).CheckServer(endpoint, tc.authorities), tc.wantError)
		})
	}
}

func otherCertificate(t *testing.T) []byte {
	t.Helper()
	chain, _, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

func TestCheckToken(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	join := &Join{Discovery: upstreamv1beta4.BootstrapTokenDiscovery{Token: "abcdef.0123456789abcdef"}}
	name, err := join.TokenSecretName()
	if err != nil || name != "bootstrap-token-abcdef" {
		t.Fatalf("Secret %q, %v", name, err)
	}
	for name, tc := range map[string]struct {
		change    map[string]string
		wantError string
	}{
		"valid":              {},
		"another key":        {map[string]string{"token-secret": "x"}, "is not the one in Secret bootstrap-token-abcdef"},
		"for something else": {map[string]string{"usage-bootstrap-authentication": "false"}, "is not for authentication"},
		"expired":            {map[string]string{"expiration": "2026-01-01T12:00:00Z"}, `has expired at "2026-01-01T12:00:00Z"`},
		"without an end":     {map[string]string{"expiration": "never"}, `has expired at "never"`},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"}, Data: map[string][]byte{
				"token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true"), "expiration": []byte("2026-01-01T12:00:01Z"),
			}}
			for key, value := range tc.change {
				secret.Data[key] = []byte(value)
			}
			expectError(t, join.CheckToken(secret, now), tc.wantError)
		})
	}
	join.Discovery.Token = "abc"
	if _, err := join.TokenSecretName(); err == nil {
		t.Error("a token of another form is accepted")
	}
}

func expectError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want an error with %q", err, want)
	}
}
