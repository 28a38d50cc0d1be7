// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Expires returns when the token or the client certificate expires that a client configuration of Load sends now. It is the
// first of both, and zero if neither has a known end: a plugin renews what it returns, and a password does not expire.
func Expires(config *rest.Config) time.Time {
	follower, ok := config.Transport.(*follower)
	if !ok {
		return time.Time{}
	}
	now := follower.content().config
	token, certificate := []byte(now.BearerToken), now.CertData
	if now.BearerTokenFile != "" {
		token, _ = os.ReadFile(now.BearerTokenFile)
	}
	if len(certificate) == 0 && now.CertFile != "" {
		certificate, _ = os.ReadFile(now.CertFile)
	}
	return first(ofToken(token), ofCertificate(certificate))
}

// ofToken returns when a JSON Web Token expires; zero if it is none, or has no end.
func ofToken(token []byte) time.Time {
	parts := strings.Split(strings.TrimSpace(string(token)), ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	claims := struct {
		Expires float64 `json:"exp"`
	}{}
	if err := json.Unmarshal(text, &claims); err != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0)
}

// ofCertificate returns when the first certificate in PEM expires; zero if there is none.
func ofCertificate(text []byte) time.Time {
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return certificate.NotAfter
}

// first returns the first of two times, of which each can be unknown.
func first(a, b time.Time) time.Time {
	if a.IsZero() || b.IsZero() {
		return cmp.Or(a, b)
	}
	if b.Before(a) {
		return b
	}
	return a
}
