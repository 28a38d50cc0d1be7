// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
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
