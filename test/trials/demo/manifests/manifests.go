// SPDX-License-Identifier: Apache-2.0

// Package manifests has the manifests of the demo, which users can also apply.
package manifests

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"slices"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/plugin"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

//go:embed *.yaml
var files embed.FS

//go:embed instance-types.csv
var instanceTypes []byte

// CatalogName is the name of the catalog to which the template refers.
const CatalogName = "demo"

// Offer are the names of the manifests that offer machines. The first one is not a file: the kubectl plugin imports the
// catalog from instance-types.csv.
var Offer = []string{imported, "1-machines.yaml", "2-template.yaml", "3-nodepool.yaml"}

// Deployments is the name of the manifest of the Pods.
const Deployments = "4-deployments.yaml"

// All are the names of all manifests, in the order in which to create them.
var All = append(slices.Clone(Offer), Deployments)

const imported = "0-catalog.yaml"

// Read returns the manifest with a name for a kind of scalable resource.
func Read(name string, kind kinds.Kind) ([]byte, error) {
	if name == imported {
		return importCatalog()
	}
	content, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return kind.Manifests(content), nil
}

func importCatalog() ([]byte, error) {
	var printed, problems bytes.Buffer
	command := plugin.NewCommand(genericiooptions.IOStreams{In: bytes.NewReader(instanceTypes), Out: &printed, ErrOut: &problems})
	command.SetArgs([]string{"catalog", "import", "csv", "--from", "-", "--name", CatalogName, "--region", "us-east-1", "--currency", "USD"})
	if err := command.Execute(); err != nil {
		return nil, fmt.Errorf("importing instance-types.csv: %w %s", err, problems.String())
	}
	return printed.Bytes(), nil
}

// Print writes all manifests as one, for kubectl.
func Print(to io.Writer, kind kinds.Kind) error {
	for _, name := range All {
		content, err := Read(name, kind)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(to, "---\n%s", content); err != nil {
			return err
		}
	}
	return nil
}
