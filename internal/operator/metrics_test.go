// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Profiles are never served to clients on the network without authentication.
func TestInsecureDiagnostics(t *testing.T) {
	for name, tc := range map[string]struct {
		args             []string
		invalid          bool
		secure, profiles bool
		certificates     string
	}{
		"by default":                       {secure: true},
		"profiles":                         {args: []string{"--enable-profiling"}, secure: true, profiles: true},
		"insecure":                         {args: []string{"--insecure-diagnostics"}},
		"a certificate":                    {args: []string{"--metrics-cert-path=/certs"}, secure: true, certificates: "/certs"},
		"an insecure certificate":          {args: []string{"--insecure-diagnostics", "--metrics-cert-path=/certs"}, invalid: true},
		"insecure profiles":                {args: []string{"--insecure-diagnostics", "--enable-profiling"}, invalid: true},
		"insecure profiles on one address": {args: []string{"--insecure-diagnostics", "--enable-profiling", "--bind-address=10.0.0.1"}, invalid: true},
		"insecure profiles on loopback":    {args: []string{"--insecure-diagnostics", "--enable-profiling", "--bind-address=127.0.0.1"}, profiles: true},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := ParseOptions(tc.args...)
			if (err != nil) != tc.invalid {
				t.Fatalf("got error %v, want one: %t", err, tc.invalid)
			}
			if tc.invalid {
				return
			}
			got := diagnostics(options, &rest.Config{Host: "https://example.com"})
			if got.SecureServing != tc.secure || (got.FilterProvider != nil) != tc.secure {
				t.Errorf("HTTPS: %t, authentication: %t, want both: %t", got.SecureServing, got.FilterProvider != nil, tc.secure)
			}
			if got.CertDir != tc.certificates {
				t.Errorf("it reads its certificate from %q, want %q", got.CertDir, tc.certificates)
			}
			if (len(got.ExtraHandlers) > 0) != tc.profiles {
				t.Errorf("it serves %d profiles, want some: %t", len(got.ExtraHandlers), tc.profiles)
			}
		})
	}
}

// Clients of the metrics can verify the operator by the certificate in --metrics-cert-path.
func TestMetricsCertificate(t *testing.T) {
	g := gomega.NewWithT(t)
	folder := t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("operator.fleet.svc", nil, nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600)).To(gomega.Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)).To(gomega.Succeed())
	options, err := ParseOptions("--metrics-cert-path=" + folder)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	home := &rest.Config{Host: "https://example.com"}
	endpoint := diagnostics(options, home)
	endpoint.BindAddress = "127.0.0.1:0"
	metrics, err := server.NewServer(endpoint, home, http.DefaultClient)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	go func() { _ = metrics.Start(t.Context()) }()
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(certificate)).To(gomega.BeTrue())
	g.Eventually(t.Context(), func() error {
		address := metrics.(interface{ GetBindAddr() string }).GetBindAddr()
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "operator.fleet.svc", MinVersion: tls.VersionTLS12})
		if err != nil {
			return err
		}
		return connection.Close()
	}).WithTimeout(10 * time.Second).Should(gomega.Succeed())
}
