// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/proxy"
)

// proxyDelay is how late a proxy delivers in each direction when it delays.
const proxyDelay = 30 * time.Second

// startProxies starts a proxy for each kubeconfig of the operator, and makes the kubeconfig use it.
func (b *builder) startProxies() error {
	var workloadErr, managementErr error
	b.WorkloadProxy, workloadErr = startProxy(b.state.workloadAccount(Operator))
	b.ManagementProxy, managementErr = startProxy(b.state.managementAccount(Operator))
	return errors.Join(workloadErr, managementErr)
}

func startProxy(kubeconfig string) (*proxy.Proxy, error) {
	p, err := proxy.New(kubeconfig, proxyDelay)
	if err != nil {
		return nil, err
	}
	return p, p.WriteKubeconfig(kubeconfig, kubeconfig)
}

// closeProxies ends the proxies, if there are any.
func (s *Stack) closeProxies() error {
	var errs []error
	for _, p := range []*proxy.Proxy{s.WorkloadProxy, s.ManagementProxy} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	s.WorkloadProxy, s.ManagementProxy = nil, nil
	return errors.Join(errs...)
}
