// SPDX-License-Identifier: Apache-2.0

// Package signals determines whether a termination handler has announced that the instance of a
// Node ends: it sets a taint or a condition of the Node. Which ones, is a setting of the operator. It is
// pure.
package signals
