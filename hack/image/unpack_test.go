// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// unpack extracts the image for an architecture from an archive into a folder, and returns its configuration.
func unpack(t *testing.T, archive, arch, root string) v1.Config {
	t.Helper()
	folder := t.TempDir()
	packed, err := os.Open(archive)
	if err != nil {
		t.Fatalf("no archive (make image writes it): %v", err)
	}
	defer func() { _ = packed.Close() }()
	extract(t, packed, folder)
	found, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	image := imageFor(t, indexIn(t, found), arch)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	extract(t, content, root)
	return config.Config
}

// indexIn returns the only index in a layout: tools that push a layout require that there is one.
func indexIn(t *testing.T, found v1.ImageIndex) v1.ImageIndex {
	t.Helper()
	manifest, err := found.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("got %d entries, want one index", len(manifest.Manifests))
	}
	index, err := found.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// imageFor returns the image of an index for an architecture.
func imageFor(t *testing.T, index v1.ImageIndex, arch string) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range manifest.Manifests {
		if descriptor.Platform.OS == "linux" && descriptor.Platform.Architecture == arch {
			image, err := index.Image(descriptor.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("no image for linux/%s", arch)
	return nil
}

// extract writes what a tar stream has below a folder.
func extract(t *testing.T, stream io.Reader, folder string) {
	t.Helper()
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = extractOne(reader, header, folder)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func extractOne(reader io.Reader, header *tar.Header, folder string) error {
	path := filepath.Join(folder, filepath.Clean("/"+header.Name))
	mode := header.FileInfo().Mode()
	if mode.IsDir() {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	} else {
		content, err := io.ReadAll(reader)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode&(fs.ModePerm|fs.ModeSticky))
}
