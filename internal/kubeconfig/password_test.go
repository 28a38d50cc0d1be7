// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The errors of files that are invalid contain nothing secret from them.
func TestErrorsHaveNoPasswords(t *testing.T) {
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
	for name, text := range map[string]string{
		"no YAML":               "SECRET",
		"another type":          head + "users: [{name: a, user: SECRET}]\n",
		"a list as token":       head + "users: [{name: a, user: {token: [SECRET]}}]\n",
		"invalid base64":        head + "users: [{name: a, user: {client-key-data: SECRET!}}]\n",
		"an invalid indent":     head + "users:\n - SECRET: : {\n",
		"no URL":                head + "clusters: [{name: a, cluster: {server: 'https://user:SECRET@example.com:port'}}]\nusers: [{name: a, user: {token: SECRET}}]\n",
		"an invalid client key": head + "clusters: [{name: a, cluster: {server: 'https://example.com'}}]\nusers: [{name: a, user: {client-certificate-data: U0VDUkVU, client-key-data: U0VDUkVU}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := read(path)
			if err == nil || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "U0VDUkVU") {
				t.Errorf("got %v, want an error without the secret", err)
			}
		})
	}
}
