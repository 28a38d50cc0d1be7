// SPDX-License-Identifier: Apache-2.0

package stack

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	kubeadmv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadmcontrolplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// workerClass is the class of the topology's MachineDeployment.
const workerClass = "default-worker"

// classObjects are a ClusterClass with its templates, and a Cluster of it. Its control plane uses an etcd that it does not run: the
// kubeadm control plane provider reaches each member of its own etcd through a kubelet, and simulated machines have none.
func classObjects(cluster metav1.ObjectMeta, endpoint clusterv1.APIEndpoint, etcd string) []client.Object {
	shared := metav1.ObjectMeta{Namespace: ClusterNamespace, Name: ClusterClassName}
	refer := func(version schema.GroupVersion, kind string) clusterv1.ClusterClassTemplateReference {
		return clusterv1.ClusterClassTemplateReference{APIVersion: version.String(), Kind: kind, Name: shared.Name}
	}
	infrastructure := &infrav1.SimulatedClusterTemplate{ObjectMeta: shared}
	infrastructure.Spec.Template.Spec.ControlPlaneEndpoint = endpoint
	controlPlane := &kubeadmcontrolplanev1.KubeadmControlPlaneTemplate{ObjectMeta: shared}
	controlPlane.Spec.Template.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = kubeadmv1.ExternalEtcd{
		Endpoints: []string{etcd}, CAFile: "/etc/kubernetes/pki/etcd/ca.crt",
		CertFile: "/etc/kubernetes/pki/apiserver-etcd-client.crt", KeyFile: "/etc/kubernetes/pki/apiserver-etcd-client.key",
	}
	// Without it, the provider would read the certificate of the API server of each machine, through the kubelet.
	controlPlane.Spec.Template.Spec.MachineTemplate.ObjectMeta.Annotations = map[string]string{
		clusterv1.MachineCertificatesExpiryDateAnnotation: "2099-01-01T00:00:00Z",
	}
	config := &kubeadmv1.KubeadmConfigTemplate{ObjectMeta: shared}
	machine := &infrav1.SimulatedMachineTemplate{ObjectMeta: shared}
	machine.Spec.Template.Spec = infrav1.SimulatedMachineSpec{
		InstanceType: "m5.large",
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("7680Mi"), corev1.ResourcePods: resource.MustParse("110"),
		},
	}
	class := &clusterv1.ClusterClass{ObjectMeta: shared}
	class.Spec.Infrastructure.TemplateRef = refer(infrav1.GroupVersion, "SimulatedClusterTemplate")
	class.Spec.ControlPlane.TemplateRef = refer(kubeadmcontrolplanev1.GroupVersion, "KubeadmControlPlaneTemplate")
	class.Spec.ControlPlane.MachineInfrastructure.TemplateRef = refer(infrav1.GroupVersion, "SimulatedMachineTemplate")
	class.Spec.Workers.MachineDeployments = []clusterv1.MachineDeploymentClass{{
		Class:          workerClass,
		Bootstrap:      clusterv1.MachineDeploymentClassBootstrapTemplate{TemplateRef: refer(kubeadmv1.GroupVersion, "KubeadmConfigTemplate")},
		Infrastructure: clusterv1.MachineDeploymentClassInfrastructureTemplate{TemplateRef: refer(infrav1.GroupVersion, "SimulatedMachineTemplate")},
	}}
	return []client.Object{infrastructure, controlPlane, config, machine, class, &clusterv1.Cluster{
		ObjectMeta: cluster,
		Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{
			ClassRef:     clusterv1.ClusterClassRef{Name: ClusterClassName},
			Version:      TopologyVersion,
			ControlPlane: clusterv1.ControlPlaneTopology{Replicas: ptr.To(int32(1))},
			Workers: clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{{
				Class: workerClass, Name: TopologyMachineDeployment, Replicas: ptr.To(int32(0)),
			}}},
		}},
	}}
}
