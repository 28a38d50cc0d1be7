// SPDX-License-Identifier: Apache-2.0

// Package install contains what the tests of installations share: a stack without the operator, the commands of a
// guide, and the operator that was installed with them.
//
// Fake kubelets run no containers. So the operator is a process of the test, with the arguments, the environment, the files
// and the identity that a Pod of the installed Deployment would have.
package install
