// SPDX-License-Identifier: Apache-2.0

// Package helm tests what users do with the Helm charts, with the real helm on the local stack, in both placements. Nodes of
// the stack are simulated and run no containers; so the operator that is installed runs as a process of the test instead,
// with the arguments, the environment, the files and the identity of the installed Deployment's Pods. Run it with make
// test-install-helm.
package helm
