// SPDX-License-Identifier: Apache-2.0

// Package config contains the manifests of the simulated infrastructure provider.
package config

import "embed"

// CRDs contains the CustomResourceDefinitions, one per file, in the folder "crd".
//
//go:embed crd/*.yaml
var CRDs embed.FS
