// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/plugin"
	"github.com/karpenter-capi/karpenter-capi/test/stack/kinds"
)

// manifests are files that a user can also apply.
//
//go:embed manifests/*.yaml
var manifests embed.FS

//go:embed manifests/instance-types.csv
var instanceTypes []byte

// catalogName is the name of the catalog to which the template refers.
const catalogName = "demo"

// importCatalog returns the manifest of the catalog that the kubectl plugin imports.
func importCatalog() ([]byte, error) {
	var printed, problems bytes.Buffer
	command := plugin.NewCommand(genericiooptions.IOStreams{In: bytes.NewReader(instanceTypes), Out: &printed, ErrOut: &problems})
	command.SetArgs([]string{"catalog", "import", "csv", "--from", "-", "--name", catalogName, "--region", "us-east-1", "--currency", "USD"})
	if err := command.Execute(); err != nil {
		return nil, fmt.Errorf("importing instance-types.csv: %w %s", err, problems.String())
	}
	return printed.Bytes(), nil
}

// manifest returns a manifest for a kind of scalable resource.
func manifest(name string, kind kinds.Kind) ([]byte, error) {
	content, err := manifests.ReadFile("manifests/" + name)
	return kind.Manifests(content), err
}

// printManifests writes all manifests as one, for kubectl.
func printManifests(to io.Writer, kind kinds.Kind) error {
	catalog, err := importCatalog()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(to, "---\n%s", catalog); err != nil {
		return err
	}
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
