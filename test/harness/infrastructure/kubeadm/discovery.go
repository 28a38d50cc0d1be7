// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

// TokenSecretName returns the name of the Secret of the token, in the namespace kube-system of the workload cluster.
func (j *Join) TokenSecretName() (string, error) {
	parts := bootstraputil.BootstrapTokenRegexp.FindStringSubmatch(j.Discovery.Token)
	if len(parts) != 3 {
		return "", fmt.Errorf("the bootstrap token does not have the form %s", bootstrapapi.BootstrapTokenPattern)
	}
	return bootstraputil.BootstrapTokenSecretName(parts[1]), nil
}

// CheckToken checks that the API server would accept the token, whose Secret is given.
func (j *Join) CheckToken(secret *corev1.Secret, now time.Time) error {
	_, key, _ := strings.Cut(j.Discovery.Token, ".")
	data := secret.Data
	switch {
	case string(data[bootstrapapi.BootstrapTokenSecretKey]) != key:
		return fmt.Errorf("the bootstrap token is not the one in Secret %s", secret.Name)
	case string(data[bootstrapapi.BootstrapTokenUsageAuthentication]) != "true":
		return fmt.Errorf("the bootstrap token in Secret %s is not for authentication", secret.Name)
	}
	if expiration, err := time.Parse(time.RFC3339, string(data[bootstrapapi.BootstrapTokenExpirationKey])); err != nil || !now.Before(expiration) {
		return fmt.Errorf("the bootstrap token in Secret %s has expired at %q", secret.Name, data[bootstrapapi.BootstrapTokenExpirationKey])
	}
	return nil
}

// CheckServer checks that the machine finds an API server, and trusts one of its authorities, which are PEM encoded.
func (j *Join) CheckServer(endpoint string, authorities []byte) error {
	if j.Discovery.APIServerEndpoint != endpoint {
		return fmt.Errorf("the API server is at %s, and the machine looks for it at %s", endpoint, j.Discovery.APIServerEndpoint)
	}
	if j.Discovery.UnsafeSkipCAVerification {
		return nil
	}
	for rest := authorities; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return errors.New("none of discovery.bootstrapToken.caCertHashes is that of the API server's authority")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("reading the authority of the API server: %w", err)
		}
		hash := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
		if slices.Contains(j.Discovery.CACertHashes, "sha256:"+hex.EncodeToString(hash[:])) {
			return nil
		}
	}
}
