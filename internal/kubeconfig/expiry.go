// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
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
	return of(token, certificate).Until
}

// Credentials are what a kubeconfig shows about its token and its client certificate. What is not known is empty or zero.
type Credentials struct {
	// User and Groups are who the API server takes the client for.
	User   string
	Groups []string
	// From and Until are from when and until when the one that expires first is valid.
	From, Until time.Time
}

// Inspect returns the credentials in the text of a kubeconfig. It reads no files that the text names: they are where the operator
// runs. The error does not contain the text.
func Inspect(text []byte) (Credentials, error) {
	file, err := clientcmd.Load(text)
	if err != nil {
		return Credentials{}, errors.New("it is no kubeconfig in YAML or JSON")
	}
	context, found := file.Contexts[file.CurrentContext]
	if !found {
		return Credentials{}, errors.New("it has no current context")
	}
	user, found := file.AuthInfos[context.AuthInfo]
	if !found {
		return Credentials{}, errors.New("its current context has no user")
	}
	token := []byte(user.Token)
	if user.TokenFile != "" { // it takes precedence
		token = nil
	}
	return of(token, user.ClientCertificateData), nil
}

// of returns what a token and a client certificate show. The API server looks at the certificate first.
func of(token, certificate []byte) Credentials {
	byToken, byCertificate := ofToken(token), ofCertificate(certificate)
	first, user := byToken, byToken
	if byToken.Until.IsZero() || !byCertificate.Until.IsZero() && byCertificate.Until.Before(byToken.Until) {
		first = byCertificate
	}
	if byCertificate.User != "" {
		user = byCertificate
	}
	return Credentials{User: user.User, Groups: user.Groups, From: first.From, Until: first.Until}
}

// ofToken returns what a JSON Web Token shows; nothing if it is none. The user is only known if it is a ServiceAccount.
func ofToken(token []byte) Credentials {
	parts := strings.Split(strings.TrimSpace(string(token)), ".")
	if len(parts) != 3 {
		return Credentials{}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Credentials{}
	}
	claims := struct {
		Subject string  `json:"sub"`
		Issued  float64 `json:"iat"`
		Expires float64 `json:"exp"`
	}{}
	if err := json.Unmarshal(text, &claims); err != nil {
		return Credentials{}
	}
	found := Credentials{From: at(claims.Issued), Until: at(claims.Expires)}
	if strings.HasPrefix(claims.Subject, "system:serviceaccount:") {
		found.User = claims.Subject
	}
	return found
}

// at returns the time of a date in a JSON Web Token; zero if it has none.
func at(seconds float64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

// ofCertificate returns what the first certificate in PEM shows; nothing if there is none.
func ofCertificate(text []byte) Credentials {
	block, _ := pem.Decode(text)
	if block == nil {
		return Credentials{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Credentials{}
	}
	return Credentials{
		User: certificate.Subject.CommonName, Groups: certificate.Subject.Organization,
		From: certificate.NotBefore, Until: certificate.NotAfter,
	}
}
