// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// imagesIn extracts an OCI archive into a folder, and returns its images by platform, such as linux/amd64.
func imagesIn(archive, folder string) (map[string]v1.Image, error) {
	packed, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = packed.Close() }()
	if err := extract(packed, folder); err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	index, err := onlyIndex(folder)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	images := map[string]v1.Image{}
	for _, descriptor := range manifest.Manifests {
		if descriptor.Platform == nil {
			return nil, fmt.Errorf("%s: the image %s has no platform", archive, descriptor.Digest)
		}
		name := descriptor.Platform.OS + "/" + descriptor.Platform.Architecture
		if images[name], err = index.Image(descriptor.Digest); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// onlyIndex returns the index in a layout. Tools that push a layout require that there is only one.
func onlyIndex(folder string) (v1.ImageIndex, error) {
	found, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := found.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("the layout has %d entries, want one index", len(manifest.Manifests))
	}
	return found.ImageIndex(manifest.Manifests[0].Digest)
}

// extract writes the folders and files of a tar stream below a folder.
func extract(stream io.Reader, folder string) error {
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f := file{path: filepath.Clean("/" + header.Name), mode: header.FileInfo().Mode()}
		if f.content, err = io.ReadAll(reader); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(f.path)), 0o755); err != nil {
			return err
		}
		if err := f.write(folder); err != nil {
			return err
		}
	}
}
