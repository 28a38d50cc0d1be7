// SPDX-License-Identifier: Apache-2.0

// Package proxy has a proxy between one client and one API server, which makes the faults of a network and of an API
// server: connections are cut or delayed, answers are lost, requests are refused. The partition test puts one in front
// of each API server of the operator.
//
// The client connects with TLS, as it does to an API server, so that HTTP/2 and its checks of connections are the real
// ones. The proxy has the client's certificate of the kubeconfig, and passes on bearer tokens and impersonation.
package proxy
