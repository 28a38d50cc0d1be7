// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"
)

// Each field is one of a template of a provider that exists.
func TestSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want []Reference
	}{
		"a file of kubeadm, EKS, RKE2 or K3s": {
			`{template: {spec: {files: [{path: /a, content: secret}, {path: /b, owner: root, contentFrom: {secret: {name: other-kubeconfig, key: value}}}]}}}`,
			[]Reference{{"spec.template.spec.files[1].contentFrom.secret.name", "other-kubeconfig"}},
		},
		"a password of kubeadm": {
			`{template: {spec: {users: [{name: core, passwdFrom: {secret: {name: pass, key: value}}}]}}}`,
			[]Reference{{"spec.template.spec.users[0].passwdFrom.secret.name", "pass"}},
		},
		"a registry of RKE2": {
			`{template: {spec: {privateRegistriesConfig: {configs: {r.example.com: {authSecret: {kind: Secret, namespace: fleet, name: auth}, tls: {tlsConfigSecret: {name: tls}}}}}}}}`,
			[]Reference{
				{"spec.template.spec.privateRegistriesConfig.configs.r.example.com.authSecret.name", "auth"},
				{"spec.template.spec.privateRegistriesConfig.configs.r.example.com.tls.tlsConfigSecret.name", "tls"},
			},
		},
		"a token of k0smotron": {
			`{template: {spec: {joinTokenSecretRef: {name: token, key: value}, secretMetadata: {labels: {a: b}}}}}`,
			[]Reference{{"spec.template.spec.joinTokenSecretRef.name", "token"}},
		},
		"user data of a server of OpenStack": {
			`{template: {spec: {userDataRef: {name: other-kubeconfig}}}}`,
			[]Reference{{"spec.template.spec.userDataRef.name", "other-kubeconfig"}},
		},
		"an identity of OpenStack": {
			`{template: {spec: {identityRef: {name: cloud-config, cloudName: openstack}}}}`,
			[]Reference{{"spec.template.spec.identityRef.name", "cloud-config"}},
		},
		"user data of Metal3, also of another namespace": {
			`{template: {spec: {userData: {name: data}, metaData: {name: meta, namespace: other}, networkData: {name: network, namespace: fleet}}}}`,
			[]Reference{
				{"spec.template.spec.metaData.name", "other/meta"},
				{"spec.template.spec.networkData.name", "network"},
				{"spec.template.spec.userData.name", "data"},
			},
		},
		"credentials of Linode and Hetzner": {
			`{template: {spec: {credentialsRef: {name: linode, namespace: other}, sshSpec: {secretRef: {name: ssh, key: {name: n, public: p}}}}}}`,
			[]Reference{
				{"spec.template.spec.credentialsRef.name", "other/linode"},
				{"spec.template.spec.sshSpec.secretRef.name", "ssh"},
			},
		},
		"volumes of KubeVirt": {
			`{template: {spec: {infraClusterSecretRef: {kind: Secret, name: infra, namespace: other}, virtualMachineTemplate: {metadata: {name: vm}, spec: {template: {spec: {volumes: [
			{name: a, secret: {secretName: volume, optional: true, volumeLabel: disk}}, {name: b, serviceAccount: {serviceAccountName: admin}},
			{name: c, cloudInitNoCloud: {userData: "#cloud-config", secretRef: {name: init}}}]}}}}}}}`,
			[]Reference{
				{"spec.template.spec.infraClusterSecretRef.name", "other/infra"},
				{"spec.template.spec.virtualMachineTemplate.spec.template.spec.volumes[0].secret.secretName", "volume"},
				{"spec.template.spec.virtualMachineTemplate.spec.template.spec.volumes[1].serviceAccount.serviceAccountName", "admin"},
				{"spec.template.spec.virtualMachineTemplate.spec.template.spec.volumes[2].cloudInitNoCloud.secretRef.name", "init"},
			},
		},
		"Pods of k0smotron": {
			`{template: {spec: {podTemplate: {spec: {serviceAccount: admin, containers: [{name: a, envFrom: [{secretRef: {name: env}}]}]}}}}}`,
			[]Reference{
				{"spec.template.spec.podTemplate.spec.containers[0].envFrom[0].secretRef.name", "env"},
				{"spec.template.spec.podTemplate.spec.serviceAccount", "admin"},
			},
		},
		"any reference to a Secret": {
			`{template: {spec: {bootstrapRef: {apiVersion: v1, kind: Secret, name: data}, other: {kind: ConfigMap, name: c}}}}`,
			[]Reference{{"spec.template.spec.bootstrapRef.name", "data"}},
		},
		"a list of names": {
			`{template: {spec: {imagePullSecrets: [{name: a}, {name: b}], extraSecretNames: [c]}}}`,
			[]Reference{{"spec.template.spec.extraSecretNames[0]", "c"}, {"spec.template.spec.imagePullSecrets[0].name", "a"}, {"spec.template.spec.imagePullSecrets[1].name", "b"}},
		},
		"fields with the names of those beside a name": {
			`{template: {spec: {items: [{secretName: a}], key: {secret: {name: b}}, optional: {tlsSecretRef: {name: c}}}}}`,
			[]Reference{{"spec.template.spec.items[0].secretName", "a"}, {"spec.template.spec.key.secret.name", "b"}, {"spec.template.spec.optional.tlsSecretRef.name", "c"}},
		},
		"what names no Secret": {
			`{template: {spec: {
				cloudInit: {secureSecretsBackend: ssm-parameter-store, insecureSkipSecretsManager: true, secretCount: 1},
				userData: "#cloud-config", iamInstanceProfile: nodes, serviceAccounts: {email: a@example.com, scopes: [compute]},
				joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {image-credential-provider-config: /etc/credentials.yaml}}},
				files: [{path: /etc/secret, owner: root, contentFrom: {configMap: {name: c}}}]}}}`,
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Secrets(spec(t, tc.spec), "fleet"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func spec(t *testing.T, text string) map[string]any {
	t.Helper()
	spec := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}
