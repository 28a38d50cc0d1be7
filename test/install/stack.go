// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stacktest"
)

const (
	// Namespace is where the guides install the operator.
	Namespace = "karpenter-capi-system"

	// Poll is how often the tests check.
	Poll = 500 * time.Millisecond
)

// OwnCRDs are the names of this project's CustomResourceDefinitions.
var OwnCRDs = []string{"instancetypecatalogs.karpenter.cluster.x-k8s.io", "karpentermachinetemplates.karpenter.cluster.x-k8s.io"}

// CRDs are the names of the CustomResourceDefinitions of an installation: Karpenter's and this project's.
var CRDs = append([]string{
	"capacitybuffers.autoscaling.x-k8s.io", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "nodepools.karpenter.sh",
}, OwnCRDs...)

// NewStack starts a stack without an operator and without the CustomResourceDefinitions. It ends with the test.
func NewStack(t *testing.T, placement stack.Placement) (context.Context, *stack.Stack) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	ctx := stacktest.Context(t)
	return ctx, stacktest.Up(ctx, t, stack.Options{Placement: placement, WithoutOperator: true, WithoutCRDs: true, Kubeadm: true})
}

// PresentCRDs returns those of CRDs that exist in the workload cluster.
func PresentCRDs(ctx context.Context, s *stack.Stack) ([]string, error) {
	return PresentCRDsIn(ctx, s.Workload)
}

// PresentCRDsIn returns those of CRDs that exist in a cluster.
func PresentCRDsIn(ctx context.Context, cluster client.Client) ([]string, error) {
	present := []string{}
	for _, name := range CRDs {
		err := cluster.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			present = append(present, name)
		}
	}
	return present, nil
}
