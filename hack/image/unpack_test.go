// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// unpack extracts the image for an architecture from an archive into a folder, and returns its configuration.
func unpack(t *testing.T, archive, arch, root string) v1.Config {
	t.Helper()
	images, err := imagesIn(archive, t.TempDir())
	if err != nil {
		t.Fatalf("no archive (make image writes it): %v", err)
	}
	image := images["linux/"+arch]
	if image == nil {
		t.Fatalf("no image for linux/%s", arch)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	if err := extract(content, root); err != nil {
		t.Fatal(err)
	}
	return config.Config
}
