// SPDX-License-Identifier: Apache-2.0

// Package aws simulates the parts of AWS that Cluster API Provider AWS uses for workers: instances and launch templates of EC2, Auto
// Scaling groups, and secrets of Secrets Manager. The provider's client finds them with the variable AWS_ENDPOINT_URL.
//
// The network of the region is what testdata of test/provider has. What the simulation does not know is an error, as in AWS.
package aws
