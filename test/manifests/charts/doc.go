// SPDX-License-Identifier: Apache-2.0

// Package charts runs the real helm on this repository's charts. Its tests check what the charts render: decoded
// objects, not text. Those of test/install send the same values to an API server.
package charts
