// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/controlplane/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

const clusterTimeout = 60 * time.Second

// clusterObjects are the Cluster and everything that it needs.
func (b *builder) clusterObjects() ([]client.Object, error) {
	kubeconfig, err := os.ReadFile(b.Kubeconfig())
	if err != nil {
		return nil, err
	}
	apiServer, err := b.Component(APIServer)
	if err != nil {
		return nil, err
	}
	endpoint := clusterv1.APIEndpoint{Host: localhost, Port: int32(apiServer.Port)}
	cluster := b.opts.clusterName()
	objectMeta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Namespace: ClusterNamespace, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
		}
	}
	secrets := []client.Object{
		// Cluster API reaches the workload cluster with it.
		&corev1.Secret{
			ObjectMeta: objectMeta(cluster + "-kubeconfig"),
			Type:       clusterv1.ClusterSecretType,
			Data:       map[string][]byte{"value": kubeconfig},
		},
		// A bootstrap provider would have created it; a simulated machine does not use it.
		&corev1.Secret{
			ObjectMeta: objectMeta(b.opts.named(BootstrapSecretName)),
			Type:       clusterv1.ClusterSecretType,
			Data:       map[string][]byte{"value": []byte("#cloud-config\n"), "format": []byte("cloud-config")},
		},
	}
	if b.opts.Kubeadm {
		authority, err := b.authoritySecret(objectMeta(secret.Name(cluster, secret.ClusterCA)))
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, authority)
	}
	if b.opts.Topology {
		etcd, err := b.Component(Etcd)
		if err != nil {
			return nil, err
		}
		ofEtcd, err := b.etcdSecrets(cluster, objectMeta)
		if err != nil {
			return nil, err
		}
		return slices.Concat(secrets, ofEtcd, classObjects(objectMeta(cluster), endpoint, "https://"+address(etcd.Port))), nil
	}
	infrastructure := []client.Object{&infrav1.SimulatedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: infrav1.GroupVersion.String(), Kind: "SimulatedCluster"},
		ObjectMeta: objectMeta(cluster),
		Spec:       infrav1.SimulatedClusterSpec{ControlPlaneEndpoint: endpoint},
	}}
	if b.opts.Provider != nil {
		infrastructure = b.opts.Provider.Objects
	}
	kind := infrastructure[0].GetObjectKind().GroupVersionKind()
	return append(append(secrets, infrastructure...),
		&controlplanev1.SimulatedControlPlane{
			ObjectMeta: objectMeta(cluster),
			Spec:       controlplanev1.SimulatedControlPlaneSpec{ControlPlaneEndpoint: endpoint},
		},
		&clusterv1.Cluster{
			ObjectMeta: objectMeta(cluster),
			Spec: clusterv1.ClusterSpec{
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: kind.Group, Kind: kind.Kind, Name: infrastructure[0].GetName(),
				},
				ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: controlplanev1.GroupVersion.Group, Kind: "SimulatedControlPlane", Name: cluster,
				},
			},
		},
	), nil
}

// authoritySecret returns the Secret with the authority of the workload cluster's API server. The kubeadm bootstrap provider tells
// machines to trust it.
func (b *builder) authoritySecret(meta metav1.ObjectMeta) (client.Object, error) {
	pki := filepath.Join(newControlPlane(b.state, "workload", "", true, b.Kubeconfig()).workDir(b.state), "pki")
	certificate, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	key, keyErr := os.ReadFile(filepath.Join(pki, "ca.key"))
	return keyPairSecret(meta, certificate, key), errors.Join(err, keyErr)
}

// etcdSecrets returns the Secrets that the kubeadm control plane provider expects for an etcd that it does not run: with its authority,
// and with the certificate of its client, the API server. Nothing uses what they have.
func (b *builder) etcdSecrets(cluster string, meta func(name string) metav1.ObjectMeta) ([]client.Object, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey(localhost, nil, nil)
	return []client.Object{
		keyPairSecret(meta(secret.Name(cluster, secret.EtcdCA)), certificate, nil),
		keyPairSecret(meta(secret.Name(cluster, secret.APIServerEtcdClient)), certificate, key),
	}, err
}

// keyPairSecret returns a Secret with a certificate, and with its key if there is one, as Cluster API stores them.
func keyPairSecret(meta metav1.ObjectMeta, certificate, key []byte) client.Object {
	pair := &corev1.Secret{ObjectMeta: meta, Type: clusterv1.ClusterSecretType, Data: map[string][]byte{secret.TLSCrtDataName: certificate}}
	if key != nil {
		pair.Data[secret.TLSKeyDataName] = key
	}
	return pair
}

// createCluster creates the Cluster, which shows that the webhooks work, and waits until it is ready.
func (b *builder) createCluster(ctx context.Context) error {
	if !b.opts.Topology { // It has a machine, whose Node this is.
		if err := b.createControlPlaneNode(ctx); err != nil {
			return fmt.Errorf("creating the Node of the control plane: %w", err)
		}
	}
	objects, err := b.clusterObjects()
	if err != nil {
		return err
	}
	for _, obj := range objects {
		what := fmt.Sprintf("the API server to accept %T %s", obj, obj.GetName())
		err := b.Await(ctx, clusterTimeout, what, func(ctx context.Context) (bool, string, error) {
			err := createWithStatus(ctx, b.Management, obj)
			if err == nil || apierrors.IsAlreadyExists(err) {
				return true, "", nil
			}
			return false, err.Error(), nil
		})
		if err != nil {
			return err
		}
	}
	what := fmt.Sprintf("the Cluster %s/%s to be ready", ClusterNamespace, b.opts.clusterName())
	return b.Await(ctx, clusterTimeout, what, func(ctx context.Context) (bool, string, error) {
		cluster := &clusterv1.Cluster{}
		err := b.Management.Get(ctx, client.ObjectKey{Namespace: ClusterNamespace, Name: b.opts.clusterName()}, cluster)
		if err != nil {
			return false, err.Error(), nil
		}
		infrastructure := ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false)
		controlPlane := ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false)
		connected := meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ClusterRemoteConnectionProbeCondition)
		found := fmt.Sprintf("infrastructure provisioned: %t, control plane initialized: %t, workload cluster connected: %t",
			infrastructure, controlPlane, connected)
		return infrastructure && controlPlane && connected, found, nil
	})
}
