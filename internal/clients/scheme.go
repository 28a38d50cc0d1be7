// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"github.com/samber/lo"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	_ "sigs.k8s.io/karpenter/pkg/apis/v1" // adds its types to the scheme

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Karpenter core uses client-go's scheme, so the types of this operator are added to it.
func init() {
	lo.Must0(v1alpha1.AddToScheme(scheme.Scheme))
	lo.Must0(clusterv1.AddToScheme(scheme.Scheme))
}
