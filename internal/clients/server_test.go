// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestServer(t *testing.T) {
	for host, want := range map[string]string{
		"https://example.com:6443":                      "https://example.com:6443",
		"https://example.com/k8s/clusters/a":            "https://example.com/k8s/clusters/a",
		"example.com":                                   "example.com",
		"https://user:secret@example.com:6443":          "https://redacted@example.com:6443",
		"https://secret@example.com":                    "https://redacted@example.com",
		"https://example.com?token=secret":              "https://example.com",
		"https://user:secret@example.com:not-a-port/%z": "with an invalid address",
	} {
		if got := Server(&rest.Config{Host: host}); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
}

func TestCheckServer(t *testing.T) {
	for host, valid := range map[string]bool{
		"https://example.com:6443": true, "https://user:secret@example.com": true, "10.0.0.1:6443": true,
		"https://user:secret@example.com:port": false, "https://user:secret@%zz": false,
	} {
		err := CheckServer("workload", &rest.Config{Host: host})
		if (err == nil) != valid {
			t.Errorf("%s: got %v, want valid: %t", host, err, valid)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the password: %v", host, err)
		}
	}
}
