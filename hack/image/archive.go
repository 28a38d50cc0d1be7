// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeArchive writes the image of all platforms for which the folder has binaries.
func writeArchive(archive, version string, created time.Time, binaries string) error {
	platforms, err := filepath.Glob(filepath.Join(binaries, "*-*"))
	if err != nil {
		return err
	}
	if len(platforms) == 0 {
		return fmt.Errorf("%s has no folder with binaries, such as linux-amd64", binaries)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, folder := range platforms {
		os, arch, _ := strings.Cut(filepath.Base(folder), "-")
		platform := v1.Platform{OS: os, Architecture: arch}
		image, err := imageOf(platform, version, created, folder)
		if err != nil {
			return fmt.Errorf("the image for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return writeLayout(archive, version, index)
}

// imageOf returns the image for one platform.
func imageOf(platform v1.Platform, version string, created time.Time, binaries string) (v1.Image, error) {
	binary, err := programsIn(binaries)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, content := range [][]file{files(), binary} {
		layer, err := layerOf(content, created)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "hack/image"}})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = platform.OS, platform.Architecture, v1.Time{Time: created}
	config.Config = settings(version)
	return mutate.ConfigFile(image, config)
}

// settings returns how the image runs, and its labels.
func settings(version string) v1.Config {
	return v1.Config{
		User:       user + ":" + user,
		Entrypoint: []string{"/" + programs[0]},
		Env:        []string{"PATH=/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source":   "https://github.com/karpenter-capi/karpenter-capi",
			"org.opencontainers.image.version":  version,
		},
	}
}

// programs are the names of the binaries.
var programs = []string{"karpenter-capi", "kubectl-karpenter_capi"}

// programsIn reads the binaries of a platform.
func programsIn(folder string) ([]file, error) {
	var binaries []file
	for _, name := range programs {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		binaries = append(binaries, file{path: name, mode: 0o755, content: content})
	}
	return binaries, nil
}

// layerOf packs files into a layer.
func layerOf(content []file, created time.Time) (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, f := range content {
		if err := pack(writer, f, created); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// pack writes one file. Its header has no name of a user, and no time but the given one.
func pack(writer *tar.Writer, f file, created time.Time) error {
	header, err := tar.FileInfoHeader(f.info(created), "")
	if err != nil {
		return err
	}
	header.Name = f.path
	if f.mode.IsDir() {
		header.Name += "/"
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err = writer.Write(f.content)
	return err
}

// writeLayout writes an index into an OCI archive, which is an OCI layout in a tar file.
func writeLayout(archive, version string, index v1.ImageIndex) error {
	folder, err := os.MkdirTemp(filepath.Dir(archive), ".image-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})
	if err := path.AppendIndex(index, name); err != nil {
		return err
	}
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	if err := packFolder(writer, folder); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(archive, packed.Bytes(), 0o644) //nolint:gosec // everybody may read it
}
