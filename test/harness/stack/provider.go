// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Provider is an infrastructure provider that was not written for tests.
type Provider struct {
	// Dir is a folder in Options.BinDir with the provider's manager, its CustomResourceDefinitions in crds, and its webhook
	// configurations in webhooks.yaml.
	Dir string

	// Contract is the version of Cluster API's contract that the CustomResourceDefinitions follow, in their version of the
	// same name.
	Contract string

	// Arguments and Env are those of the manager, in addition to what all managers have.
	Arguments, Env []string

	// Objects are created before the Cluster. The first is its infrastructure.
	Objects []client.Object
}

// manager returns the file of the manager in Options.BinDir.
func (p *Provider) manager() string { return filepath.Join(p.Dir, "manager") }
