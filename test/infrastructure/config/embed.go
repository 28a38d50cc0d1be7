// SPDX-License-Identifier: Apache-2.0

// Package config holds the manifests of the simulated infrastructure provider.
package config

import "embed"

// CRDs holds the CustomResourceDefinitions, one per file, below the folder "crd".
//
//go:embed crd/*.yaml
var CRDs embed.FS
