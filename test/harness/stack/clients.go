// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	kubeadmv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadmcontrolplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	_ "sigs.k8s.io/karpenter/pkg/apis/v1" // adds its kinds to client-go's scheme

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
)

// NewScheme returns a scheme with all kinds of the stack. It adds them only once: a scheme has no lock, and the clients of
// other stacks of the process read it.
var NewScheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := clientgoscheme.Scheme
	err := errors.Join(
		apiextensionsv1.AddToScheme(scheme),
		clusterv1.AddToScheme(scheme),
		kubeadmv1.AddToScheme(scheme),
		kubeadmcontrolplanev1.AddToScheme(scheme),
		ipamv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme),
		controller.AddToScheme(scheme),
	)
	return scheme, err
})

// connect creates the clients of both clusters.
func (s *Stack) connect() error {
	var err error
	if s.Workload, err = newClient(s.Kubeconfig()); err != nil {
		return fmt.Errorf("workload cluster: %w", err)
	}
	if s.Management, err = newClient(s.ManagementKubeconfig()); err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	return nil
}

func newClient(kubeconfig string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}
