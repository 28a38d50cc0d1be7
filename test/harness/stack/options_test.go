// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"path/filepath"
	"testing"
)

func TestBinary(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		want    map[string]string
	}{
		"the versions of the Go modules": {
			want: map[string]string{
				binClusterAPI: "cluster-api-core", binKubeadmBootstrap: "cluster-api-kubeadm-bootstrap", binAPIServer: "kube-apiserver", binEtcd: "etcd",
			},
		},
		"others": {
			options: Options{ClusterAPI: "v1.13.6", Kubernetes: "v1.34.4"},
			want: map[string]string{
				binClusterAPI:        "cluster-api/v1.13.6/cluster-api-core",
				binKubeadmBootstrap:  "cluster-api/v1.13.6/cluster-api-kubeadm-bootstrap",
				binAPIServer:         "kubernetes/v1.34.4/kube-apiserver",
				binControllerManager: "kubernetes/v1.34.4/kube-controller-manager",
				binScheduler:         "kubernetes/v1.34.4/kube-scheduler",
				binKubectl:           "kubernetes/v1.34.4/kubectl",
				binEtcd:              "etcd", binKwok: "kwok", binOperator: "karpenter-capi",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.BinDir = "bin"
			for binary, want := range tc.want {
				if got := tc.options.binary(binary); got != filepath.Join("bin", want) {
					t.Errorf("%s is %s, want bin/%s", binary, got, want)
				}
			}
		})
	}
}
