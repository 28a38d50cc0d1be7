// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The settings of the operator and the Secret with its kubeconfig are read from its Pod, as each installation writes them.
func TestOperatorSettings(t *testing.T) {
	const namespace, path = "karpenter", "/etc/karpenter-capi/workload-cluster"
	fromNamespace := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}
	mount := []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "kubeconfig", MountPath: path}}
	volume := func(items ...corev1.KeyToPath) []corev1.Volume {
		return []corev1.Volume{{Name: "data"}, {Name: "kubeconfig", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "prod-kubeconfig", Items: items}}}}
	}
	for name, tc := range map[string]struct {
		container corev1.Container
		volumes   []corev1.Volume
		cluster   string
		want      *Kubeconfig
	}{
		"the chart, in one cluster": {container: corev1.Container{Env: []corev1.EnvVar{{Name: "CLUSTER_NAMESPACE", Value: "clusters"}}}, cluster: "clusters"},
		"the chart, with the management cluster": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "CLUSTER_API_KUBECONFIG", Value: path + "/kubeconfig"}}, VolumeMounts: mount},
			volumes:   volume(corev1.KeyToPath{Key: "value", Path: "kubeconfig"}),
			want:      &Kubeconfig{Path: path + "/kubeconfig", Namespace: namespace, Secret: "prod-kubeconfig", Key: "value"},
		},
		"clusterctl, in the management cluster": {
			container: corev1.Container{
				Args:         []string{"--workload-kubeconfig=" + path + "/kubeconfig", "--cluster-namespace=$(WATCH_NAMESPACE)"},
				Env:          []corev1.EnvVar{{Name: "WATCH_NAMESPACE", ValueFrom: fromNamespace}, {Name: "CLUSTER_NAMESPACE", Value: "overridden"}},
				VolumeMounts: mount,
			},
			volumes: volume(corev1.KeyToPath{Key: "value", Path: "kubeconfig"}),
			cluster: namespace,
			want:    &Kubeconfig{ForWorkload: true, Path: path + "/kubeconfig", Namespace: namespace, Secret: "prod-kubeconfig", Key: "value"},
		},
		"by hand, with words and all keys": {
			container: corev1.Container{Command: []string{"karpenter-capi", "--workload-kubeconfig", path + "/value", "--cluster-namespace", "clusters"}, VolumeMounts: mount},
			volumes:   volume(), cluster: "clusters",
			want: &Kubeconfig{ForWorkload: true, Path: path + "/value", Namespace: namespace, Secret: "prod-kubeconfig", Key: "value"},
		},
		"one key as a file": {
			container: corev1.Container{
				Env:          []corev1.EnvVar{{Name: "WORKLOAD_KUBECONFIG", Value: path + "/kubeconfig"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "kubeconfig", MountPath: path + "/kubeconfig", SubPath: "value"}},
			},
			volumes: volume(),
			want:    &Kubeconfig{ForWorkload: true, Path: path + "/kubeconfig", Namespace: namespace, Secret: "prod-kubeconfig", Key: "value"},
		},
		"not from a Secret": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "WORKLOAD_KUBECONFIG", Value: "/data/kubeconfig"}}, VolumeMounts: mount},
			volumes:   volume(),
			want:      &Kubeconfig{ForWorkload: true, Path: "/data/kubeconfig"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// A Pod can have other containers before and after the operator.
			tc.container.Name = "controller"
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Annotations: map[string]string{defaultContainer: "controller"}}}
			pod.Spec.Containers, pod.Spec.Volumes = []corev1.Container{{Name: "proxy"}, tc.container}, tc.volumes
			operator := &Operator{Pods: []corev1.Pod{pod}}
			if got := operator.Setting("cluster-namespace", "CLUSTER_NAMESPACE"); got != tc.cluster {
				t.Errorf("the namespace of the Cluster is %q, want %q", got, tc.cluster)
			}
			if diff := cmp.Diff(tc.want, operator.Kubeconfig()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
