// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func tokenUntil(at time.Time) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(fmt.Appendf(nil, `{"exp":%d}`, at.Unix())) + ".c2ln"
}

func TestExpires(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "token"), []byte(tokenUntil(noon)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		user string
		want time.Time
	}{
		"a token":                {user: "{token: " + tokenUntil(noon) + "}", want: noon},
		"a token in a file":      {user: "{tokenFile: token}", want: noon},
		"a token without an end": {user: "{token: secret}"},
		"a password":             {user: "{username: a, password: a.b.c}"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder, "kubeconfig")
			text := `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
 clusters: [{name: a, cluster: {server: "https://127.0.0.1:6443"}}], users: [{name: a, user: ` + tc.user + `}]}`
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := Load(path, func(error) {})
			if err != nil {
				t.Fatal(err)
			}
			if got := Expires(config); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// certificateUntil returns a client certificate in base64 that lasts for a year.
func certificateUntil(t *testing.T, at time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		NotBefore: at.AddDate(-1, 0, 0), NotAfter: at,
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// Inspect returns who the user of a kubeconfig is, and how long its credentials last, and repeats none of them.
func TestInspect(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	encode := base64.RawURLEncoding.EncodeToString
	account := "system:serviceaccount:karpenter:operator"
	token := "e30." + encode(fmt.Appendf(nil, `{"sub":%q,"iat":%d,"exp":%d}`, account, noon.AddDate(0, 0, -1).Unix(), noon.Unix())) + ".c2ln"
	certificate := certificateUntil(t, noon.AddDate(0, 1, 0))
	for name, tc := range map[string]struct {
		text, user, problem string
		want                Credentials
	}{
		"a token of a ServiceAccount": {user: "{token: " + token + "}", want: Credentials{User: account, From: noon.AddDate(0, 0, -1), Until: noon}},
		"a token of another user":     {user: "{token: " + tokenUntil(noon) + "}", want: Credentials{Until: noon}},
		"a token in a file":           {user: "{token: " + token + ", tokenFile: token}"},
		"a client certificate": {
			user: "{client-certificate-data: " + certificate + "}",
			want: Credentials{User: "admin", Groups: []string{"system:masters"}, From: noon.AddDate(0, 1, 0).AddDate(-1, 0, 0), Until: noon.AddDate(0, 1, 0)},
		},
		"both: the certificate says who, and the token ends first": {
			user: "{token: " + token + ", client-certificate-data: " + certificate + "}",
			want: Credentials{User: "admin", Groups: []string{"system:masters"}, From: noon.AddDate(0, 0, -1), Until: noon},
		},
		"a password":         {user: "{username: a, password: secret}"},
		"no kubeconfig":      {text: "secret", problem: "it is no kubeconfig"},
		"no current context": {text: "{apiVersion: v1, kind: Config, users: [{name: secret}]}", problem: "no current context"},
		"no user":            {text: "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: secret}}]}", problem: "no user"},
	} {
		t.Run(name, func(t *testing.T) {
			text := tc.text
			if text == "" {
				text = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: ` + tc.user + `}]}`
			}
			got, err := Inspect([]byte(text))
			if tc.problem == "" && err != nil || tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), "secret")) {
				t.Fatalf("got the error %v, want %q without the content", err, tc.problem)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
