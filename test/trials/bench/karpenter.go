// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/workload"
)

const readyWithin = time.Minute

// prepareKarpenter creates the manifests, the NodePool and the Deployments, and waits until the NodePool is ready.
func (t *trial) prepareKarpenter(ctx context.Context, manifests string, class nodeClass) error {
	objects, err := render(manifests+"\n---\n"+nodePool, t.offerings, class)
	if err != nil {
		return err
	}
	if err := t.Create(ctx, objects); err != nil {
		return err
	}
	for i := range t.offerings {
		deployment := workload.Deployment(deploymentName(i), podLabels, map[string]string{corev1.LabelTopologyZone: zoneName(i)})
		if err := t.Workload.Create(ctx, deployment); err != nil {
			return fmt.Errorf("creating Deployment %s: %w", deployment.Name, err)
		}
	}
	return t.Await(ctx, readyWithin, "the NodePool to be ready", func(ctx context.Context) (bool, string, error) {
		pool := &karpv1.NodePool{}
		if err := t.Workload.Get(ctx, client.ObjectKey{Name: poolName}, pool); err != nil {
			return false, err.Error(), nil
		}
		return pool.StatusConditions().IsTrue("Ready"), "it is not ready", nil
	})
}

// scalePods spreads Pods over the Deployments, one for each offering.
func scalePods(ctx context.Context, t *trial, n int) error {
	for i := range t.offerings {
		if err := workload.Scale(ctx, t.Workload, deploymentName(i), shareOf(n, t.offerings, i)); err != nil {
			return err
		}
	}
	return nil
}
