// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the Dockerfile copies into the first layer is what the archive has there.
func TestWriteFiles(t *testing.T) {
	folder := t.TempDir()
	if err := run([]string{"files", folder}); err != nil {
		t.Fatal(err)
	}
	count := 0
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if path != folder {
			count++
		}
		return err
	})
	if err != nil || count != len(files()) {
		t.Errorf("got %d files and %v, want %d", count, err, len(files()))
	}
	for _, want := range files() {
		found, err := os.Stat(filepath.Join(folder, want.path))
		if err != nil {
			t.Fatal(err)
		}
		if found.Mode() != want.mode {
			t.Errorf("%s has mode %s, want %s", want.path, found.Mode(), want.mode)
		}
		if want.mode.IsDir() {
			continue
		}
		if got, err := os.ReadFile(filepath.Join(folder, want.path)); err != nil || string(got) != string(want.content) {
			t.Errorf("%s has %d bytes and %v, want %d", want.path, len(got), err, len(want.content))
		}
	}
}

func TestSame(t *testing.T) {
	archiveOf := func(version, seconds, program string) string {
		binaries := binariesOf(t, "linux-amd64", "linux-arm64")
		if err := os.WriteFile(filepath.Join(binaries, "linux-arm64", programs[0]), []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		archive := filepath.Join(t.TempDir(), "image.tar")
		if err := run([]string{archive, version, seconds, binaries}); err != nil {
			t.Fatal(err)
		}
		return archive
	}
	first := archiveOf("v0.1.0", "1700000000", "program")
	for name, tc := range map[string]struct {
		other string
		want  []string
	}{
		"another time":    {other: archiveOf("v0.1.0", "1800000000", "program")},
		"another version": {other: archiveOf("v0.2.0", "1700000000", "program"), want: []string{"linux/amd64 labels", "linux/arm64 labels"}},
		"another program": {other: archiveOf("v0.1.0", "1700000000", "other"), want: []string{"linux/arm64 layer 2: -rwxr-xr-x 0:0 /karpenter-capi"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := run([]string{"same", first, tc.other})
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("got %v, want differences: %v", err, tc.want)
			}
			for _, want := range tc.want {
				if strings.Count(err.Error(), want) != 2 {
					t.Errorf("%v does not list %q for both archives", err, want)
				}
			}
		})
	}
}

// The last stage of the Dockerfile has the layers and the settings of this image.
func TestDockerfile(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	var got []string
	for line := range strings.Lines(text[strings.LastIndex(text, "\nFROM ")+1:]) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "ARG ") {
			got = append(got, line)
		}
	}
	wanted := settings("${VERSION}")
	want := []string{"FROM scratch", "COPY --from=builder /out/files/ /", "COPY --from=builder /out/" + strings.Join(programs, " /out/") + " /"}
	for _, variable := range wanted.Env {
		want = append(want, "ENV "+variable)
	}
	var labels []string
	for key, value := range wanted.Labels {
		labels = append(labels, "LABEL "+key+"="+value)
	}
	want = append(want, slices.Sorted(slices.Values(labels))...)
	want = append(want, "USER "+wanted.User, "WORKDIR "+wanted.WorkingDir, `ENTRYPOINT ["`+strings.Join(wanted.Entrypoint, `", "`)+`"]`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Dockerfile (-hack/image +Dockerfile):\n%s", diff)
	}
}
