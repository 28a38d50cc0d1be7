// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"fmt"
	"io"

	"github.com/karpenter-capi/karpenter-capi/test/stack/kinds"
)

// manifests are files that a user can also apply.
//
//go:embed manifests/*.yaml
var manifests embed.FS

// manifest returns a manifest for a kind of scalable resource.
func manifest(name string, kind kinds.Kind) ([]byte, error) {
	content, err := manifests.ReadFile("manifests/" + name)
	return kind.Manifests(content), err
}

// printManifests writes all manifests as one, for kubectl.
func printManifests(to io.Writer, kind kinds.Kind) error {
	files, err := manifests.ReadDir("manifests")
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := manifest(file.Name(), kind)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(to, "---\n%s", content); err != nil {
			return err
		}
	}
	return nil
}

// create creates the objects of a manifest.
func (s *story) create(ctx context.Context, name string) error {
	content, err := manifest(name, s.kind)
	if err != nil {
		return err
	}
	if err := s.Create(ctx, content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
