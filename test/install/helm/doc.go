// SPDX-License-Identifier: Apache-2.0

// Package helm tests what users do with the Helm charts, with the real helm on the local stack, in both placements.
// Package install describes what replaces the Pods. Run it with make test-install-helm.
package helm
