// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewOnDemand is newOnDemand for tests with packages that import this one.
func NewOnDemand(of cache.Cache) client.Reader { return newOnDemand(of) }

// Patience is patience.
const Patience = patience
