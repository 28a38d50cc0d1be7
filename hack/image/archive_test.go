// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// binariesOf returns a folder with small files in place of the binaries.
func binariesOf(t *testing.T, platforms ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, platform := range platforms {
		if err := os.Mkdir(filepath.Join(folder, platform), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"karpenter-capi", "kubectl-karpenter_capi"} {
			if err := os.WriteFile(filepath.Join(folder, platform, name), []byte(name+" for "+platform), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// write writes an archive and returns its path.
func write(t *testing.T, binaries string) string {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := run([]string{archive, "v0.1.0", "1700000000", binaries}); err != nil {
		t.Fatal(err)
	}
	return archive
}

func TestArchive(t *testing.T) {
	archive := write(t, binariesOf(t, "linux-amd64", "linux-arm64"))
	for _, arch := range []string{"amd64", "arm64"} {
		root := t.TempDir()
		config := unpack(t, archive, arch, root)
		if config.User != "65532:65532" || !cmp.Equal(config.Entrypoint, []string{"/karpenter-capi"}) {
			t.Errorf("%s: got user %q and entrypoint %q", arch, config.User, config.Entrypoint)
		}
		got, err := os.ReadFile(filepath.Join(root, "karpenter-capi"))
		if err != nil {
			t.Fatal(err)
		}
		if want := "karpenter-capi for linux-" + arch; string(got) != want {
			t.Errorf("got the binary %q, want %q", got, want)
		}
	}
}

func TestArchiveIsReproducible(t *testing.T) {
	var contents [2][]byte
	for i := range contents {
		var err error
		if contents[i], err = os.ReadFile(write(t, binariesOf(t, "linux-amd64", "linux-arm64"))); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(contents[0], contents[1]) {
		t.Error("the same binaries gave two different archives")
	}
}

func TestModes(t *testing.T) {
	root := t.TempDir()
	unpack(t, write(t, binariesOf(t, "linux-amd64")), "amd64", root)
	for path, want := range map[string]string{
		"etc/passwd":                        "-rw-r--r--",
		"etc/ssl/certs/ca-certificates.crt": "-rw-r--r--",
		"karpenter-capi":                    "-rwxr-xr-x",
		"tmp":                               "dtrwxrwxrwx",
	} {
		found, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := found.Mode().String(); got != want {
			t.Errorf("%s has mode %s, want %s", path, got, want)
		}
	}
}

func TestCertificates(t *testing.T) {
	count := 0
	for rest := certificates(); len(rest) > 0; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatalf("no certificate after %d", count)
		}
	}
	if count < 100 {
		t.Errorf("got %d certificates, want at least 100", count)
	}
}

func TestRunRejects(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing":               nil,
		"a time with letters":   {"image.tar", "v0.1.0", "today", "bin"},
		"a folder without them": {filepath.Join(t.TempDir(), "image.tar"), "v0.1.0", "0", t.TempDir()},
	} {
		if err := run(args); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
