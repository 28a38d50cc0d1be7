// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// What is installed in each placement.
func TestPlacements(t *testing.T) {
	operator := []string{
		"ClusterRole /karpenter-capi",
		"ClusterRole /karpenter-capi-admin",
		"ClusterRole /karpenter-capi-core",
		"ClusterRole /karpenter-capi-metrics-reader",
		"ClusterRoleBinding /karpenter-capi",
		"ClusterRoleBinding /karpenter-capi-core",
		"Deployment karpenter/karpenter-capi",
		"PodDisruptionBudget karpenter/karpenter-capi",
		"Role karpenter/karpenter-capi",
		"RoleBinding karpenter/karpenter-capi",
		"Service karpenter/karpenter-capi",
		"ServiceAccount karpenter/karpenter-capi",
	}
	for name, want := range map[string][]string{
		"one cluster":                 operator,
		"workload cluster, existing":  operator,
		"workload cluster, generated": append([]string{"Secret karpenter/karpenter-capi-management-kubeconfig"}, operator...),
		"management cluster": {
			"ClusterRole /karpenter.karpenter-capi",
			"ClusterRole /karpenter.karpenter-capi-metrics-reader",
			"ClusterRoleBinding /karpenter.karpenter-capi",
			"Deployment karpenter/karpenter-capi",
			"PodDisruptionBudget karpenter/karpenter-capi",
			"Role karpenter/karpenter-capi",
			"Role karpenter/karpenter-capi-management",
			"RoleBinding karpenter/karpenter-capi",
			"RoleBinding karpenter/karpenter-capi-management",
			"Service karpenter/karpenter-capi",
			"ServiceAccount karpenter/karpenter-capi",
		},
		"identity": {
			"ClusterRole /karpenter-capi",
			"ClusterRoleBinding /karpenter-capi",
			"Role default/karpenter-capi-management",
			"RoleBinding default/karpenter-capi-management",
			"ServiceAccount karpenter/karpenter-capi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := render(t, Operator, Matrix()[name]).names()
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The operator finds the kubeconfig of the management cluster at the path in its setting.
func TestManagementKubeconfig(t *testing.T) {
	for name, want := range map[string]*corev1.SecretVolumeSource{
		"one cluster":                 nil,
		"workload cluster, existing":  {SecretName: "management", Items: []corev1.KeyToPath{{Key: "value", Path: "kubeconfig"}}},
		"workload cluster, generated": {SecretName: "karpenter-capi-management-kubeconfig", Items: []corev1.KeyToPath{{Key: "kubeconfig", Path: "kubeconfig"}}},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := the[appsv1.Deployment](t, render(t, Operator, Matrix()[name]), "Deployment")
			pod, path := deployment.Spec.Template.Spec, readSettings(t, deployment).ClusterAPIKubeconfig
			if want == nil {
				if path != "" || len(pod.Volumes) > 0 || len(pod.Containers[0].VolumeMounts) > 0 {
					t.Errorf("got a kubeconfig at %s, and the volumes %v", path, pod.Volumes)
				}
				return
			}
			mounts := []corev1.VolumeMount{{Name: "management-kubeconfig", MountPath: "/etc/karpenter-capi/management-cluster", ReadOnly: true}}
			if diff := cmp.Diff(mounts, pod.Containers[0].VolumeMounts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			volumes := []corev1.Volume{{Name: mounts[0].Name, VolumeSource: corev1.VolumeSource{Secret: want}}}
			if diff := cmp.Diff(volumes, pod.Volumes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if wantPath := mounts[0].MountPath + "/" + want.Items[0].Path; path != wantPath {
				t.Errorf("the operator reads %s, want %s", path, wantPath)
			}
		})
	}
}

// A kubeconfig that the chart generates is valid. The operator follows it, so its Pods stay when it changes.
func TestGeneratedKubeconfig(t *testing.T) {
	generate := func(token string) (*clientcmdapi.Config, corev1.PodTemplateSpec) {
		rendered := render(t, Operator, Values{"placement": "WorkloadCluster", "managementCluster": Values{
			"server": "https://management.example.com:8443", "certificateAuthority": CertificateAuthority, "token": token,
		}})
		config, err := clientcmd.Load([]byte(the[corev1.Secret](t, rendered, "Secret").StringData["kubeconfig"]))
		if err != nil {
			t.Fatal(err)
		}
		return config, the[appsv1.Deployment](t, rendered, "Deployment").Spec.Template
	}
	// A file with the token can end with a newline.
	config, pod := generate("secret\n")
	client, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{client.Host, client.BearerToken, string(client.CAData)}
	if diff := cmp.Diff([]string{"https://management.example.com:8443", "secret", CertificateAuthority}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, other := generate("another")
	if diff := cmp.Diff(pod, other); diff != "" {
		t.Errorf("with another token the Pods differ (-want +got):\n%s", diff)
	}
}

// The operator in the management cluster reads the kubeconfig of the workload cluster from Cluster API's Secret.
func TestWorkloadKubeconfig(t *testing.T) {
	for name, want := range map[string]*corev1.SecretVolumeSource{
		"management cluster":           {SecretName: "demo-kubeconfig", Items: []corev1.KeyToPath{{Key: "value", Path: "kubeconfig"}}},
		"management cluster, existing": {SecretName: "workload", Items: []corev1.KeyToPath{{Key: "kubeconfig", Path: "kubeconfig"}}},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := the[appsv1.Deployment](t, render(t, Operator, Matrix()[name]), "Deployment")
			pod, settings := deployment.Spec.Template.Spec, readSettings(t, deployment)
			mounts := []corev1.VolumeMount{{Name: "workload-kubeconfig", MountPath: "/etc/karpenter-capi/workload-cluster", ReadOnly: true}}
			if diff := cmp.Diff(mounts, pod.Containers[0].VolumeMounts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			volumes := []corev1.Volume{{Name: mounts[0].Name, VolumeSource: corev1.VolumeSource{Secret: want}}}
			if diff := cmp.Diff(volumes, pod.Volumes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := mounts[0].MountPath + "/kubeconfig"; settings.WorkloadKubeconfig != want || settings.ClusterAPIKubeconfig != "" {
				t.Errorf("the operator reads %q and %q, want only %s", settings.WorkloadKubeconfig, settings.ClusterAPIKubeconfig, want)
			}
		})
	}
}

// The files in config/placements install what a placement needs.
func TestPlacementFiles(t *testing.T) {
	for file, namespace := range map[string]string{
		"one-cluster.yaml": "karpenter-capi-system", "workload-cluster.yaml": "karpenter-capi-system",
		"management-cluster.yaml": "default", "identity.yaml": "default",
	} {
		text, err := os.ReadFile(filepath.Join(Root(), "config", "placements", file))
		if err != nil {
			t.Fatal(err)
		}
		values := Values{}
		if err := yaml.UnmarshalStrict(text, &values); err != nil {
			t.Fatal(err)
		}
		if _, err := newHelm(t).Template(t.Context(), "karpenter-capi", namespace, Operator, values); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Releases for several Clusters in one management cluster share no object, in one namespace and in several.
func TestReleasesOfFleet(t *testing.T) {
	seen := map[string]string{}
	for _, release := range []struct{ namespace, name, cluster string }{
		{"fleet", "one", "one"}, {"fleet", "two", "two"}, {"other", "one", "one"},
	} {
		values := Values{"placement": "ManagementCluster", "settings": Values{"clusterName": release.cluster, "clusterNamespace": release.namespace}}
		found, err := newHelm(t).Template(t.Context(), release.name, release.namespace, Operator, values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range found {
			id := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
			if other := seen[id]; other != "" {
				t.Errorf("%s belongs to %s and to %s/%s", id, other, release.namespace, release.name)
			}
			seen[id] = release.namespace + "/" + release.name
		}
	}
}
