// SPDX-License-Identifier: Apache-2.0

// Package provider has tests with an infrastructure provider that was not written for this project: its own controllers and webhooks
// run against a simulated cloud. `make test-provider` runs them, and `make test-e2e` does not, because the provider takes minutes to
// build.
package provider
