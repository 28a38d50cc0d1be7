// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"fmt"
)

// manifests are the files that a user can apply, too.
//
//go:embed manifests/*.yaml
var manifests embed.FS

// create creates the objects of a manifest.
func (s *story) create(ctx context.Context, name string) error {
	content, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return err
	}
	if err := s.Create(ctx, content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
