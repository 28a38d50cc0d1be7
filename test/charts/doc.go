// SPDX-License-Identifier: Apache-2.0

// Package charts runs the real helm on this repository's charts. Its own tests look at what the charts render: at decoded
// objects, not at text. Those of test/install bring the same values to an API server.
package charts
