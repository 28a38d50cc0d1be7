// SPDX-License-Identifier: Apache-2.0

package corestate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/remediation"
)

// NodeReader is the client from which core's controller of Nodes reads them into the cluster state. It returns the
// Nodes whose machines can be restarted with other reasons of their conditions, which the repair policies that restart them
// match (package remediation). Core reads each Node again after a minute, so a template that changes needs no watch.
//
// Core matches the policies with nothing else of a Node, writes no Node from the cluster state, and uses the reasons for
// nothing but logs and messages (karpenter: pkg/controllers/node/health/policy.go).
type NodeReader struct {
	client.Client
	clusters *clients.Clusters
}

// NewNodeReader returns a client that reads from another one.
func NewNodeReader(workload client.Client, clusters *clients.Clusters) *NodeReader {
	return &NodeReader{Client: workload, clusters: clusters}
}

// Get implements client.Reader.
func (r *NodeReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := r.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	node, isNode := object.(*corev1.Node)
	if !isNode || node.Labels[clients.NodeTemplateLabel] == "" {
		return nil
	}
	template, err := r.clusters.SharedTemplate(ctx, node.Labels[clients.NodeTemplateLabel])
	if err != nil {
		return err
	}
	if template != nil && remediation.Usable(template) {
		remediation.Announce(node)
	}
	return nil
}
