// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/cloudinit"
	kubeadmtypes "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstream"
)

const hostname = "workers-abc12"

// bootstrapData returns what the kubeadm bootstrap provider creates for a worker.
func bootstrapData(t *testing.T, version string, registration bootstrapv1.NodeRegistrationOptions) []byte {
	t.Helper()
	parsed := semver.MustParse(version)
	join, err := kubeadmtypes.MarshalJoinConfigurationForVersion(&bootstrapv1.JoinConfiguration{
		NodeRegistration: registration,
		Discovery: bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{
			Token: "abcdef.0123456789abcdef", APIServerEndpoint: "127.0.0.1:6443", CACertHashes: []string{"sha256:00"},
		}},
	}, parsed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := cloudinit.NewNode(&cloudinit.NodeInput{
		BaseUserData:      cloudinit.BaseUserData{PreKubeadmCommands: []string{"echo first"}, KubernetesVersion: parsed},
		JoinConfiguration: join,
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func arguments(pairs ...string) []bootstrapv1.Arg {
	var args []bootstrapv1.Arg
	for i := 0; i < len(pairs); i += 2 {
		args = append(args, bootstrapv1.Arg{Name: pairs[i], Value: &pairs[i+1]})
	}
	return args
}

// The data of the kubeadm bootstrap provider.
func TestReadOfProvider(t *testing.T) {
	dedicated := corev1.Taint{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule}
	for name, tc := range map[string]struct {
		version      string
		registration bootstrapv1.NodeRegistrationOptions
		want         Join // without discovery
		wantError    string
	}{
		"nothing": {want: Join{NodeName: hostname}},
		"a name of cloud-init, taints and labels": {
			registration: bootstrapv1.NodeRegistrationOptions{
				Name: "{{ ds.meta_data.local_hostname }}", Taints: &[]corev1.Taint{dedicated},
				KubeletExtraArgs: arguments("node-labels", "disk=ssd,node.kubernetes.io/pool=web", "v", "2"),
			},
			want: Join{NodeName: hostname, Taints: []corev1.Taint{dedicated}, Labels: map[string]string{"disk": "ssd", "node.kubernetes.io/pool": "web"}},
		},
		"a name in the form of another cloud": {
			registration: bootstrapv1.NodeRegistrationOptions{Name: `{{ ds.meta_data["local_hostname"] }}`}, want: Join{NodeName: hostname},
		},
		"a fixed name": {registration: bootstrapv1.NodeRegistrationOptions{Name: "Worker"}, want: Join{NodeName: "worker"}},
		"a variable that cloud-init does not know": {
			registration: bootstrapv1.NodeRegistrationOptions{Name: "{{ ds.meta_data.name }}"},
			want:         Join{NodeName: "ci_missing_jinja_var/ds.meta_data.name"},
		},
		"the argument replaces kubeadm's taints": {
			registration: bootstrapv1.NodeRegistrationOptions{
				Taints: &[]corev1.Taint{dedicated}, KubeletExtraArgs: arguments("register-with-taints", "a=b:NoExecute,c:PreferNoSchedule"),
			},
			want: Join{NodeName: hostname, Taints: []corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoExecute}, {Key: "c", Effect: corev1.TaintEffectPreferNoSchedule}}},
		},
		"an argument overrides the name": {
			registration: bootstrapv1.NodeRegistrationOptions{Name: "a", KubeletExtraArgs: arguments("hostname-override", "b")}, want: Join{NodeName: "b"},
		},
		"a label that the kubelet must not set": {
			registration: bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: arguments("node-labels", "node-role.kubernetes.io/worker=")},
			wantError:    "the kubelet's argument node-labels=node-role.kubernetes.io/worker=: unknown 'kubernetes.io' or 'k8s.io' label node-role.kubernetes.io/worker",
		},
		"a taint without an effect": {
			registration: bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: arguments("register-with-taints", "a=b")},
			wantError:    `the taint "a=b" has no effect of taints`,
		},
		"no number of Pods": {
			registration: bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: arguments("max-pods", "many")}, wantError: "max-pods=many",
		},
		"reserved without a quantity": {
			registration: bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: arguments("kube-reserved", "cpu")}, wantError: `"cpu" has no "="`,
		},
		"a threshold that is no quantity": {
			registration: bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: arguments("eviction-hard", "memory.available<few")}, wantError: "eviction-hard",
		},
		"an older kubeadm": {version: "1.30.0", wantError: "expected a JoinConfiguration of kubeadm.k8s.io/v1beta4"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.version == "" {
				tc.version = "1.36.3"
			}
			got, err := Read(bootstrapData(t, tc.version, tc.registration), hostname)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Fatalf("got %v, want an error with %q", err, tc.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Discovery.Token != "abcdef.0123456789abcdef" || got.Discovery.APIServerEndpoint != "127.0.0.1:6443" {
				t.Errorf("discovery: %+v", got.Discovery)
			}
			if diff := cmp.Diff(fmt.Sprint(tc.want.NodeName, tc.want.Taints, tc.want.Labels), fmt.Sprint(got.NodeName, got.Taints, got.Labels)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The kubeadm bootstrap provider's data for the machines of a control plane: the first one creates the cluster, and others join it.
func TestReadOfControlPlane(t *testing.T) {
	version := semver.MustParse("1.36.3")
	cluster, clusterErr := kubeadmtypes.MarshalClusterConfigurationForVersion(&bootstrapv1.ClusterConfiguration{}, version, &upstream.AdditionalData{ClusterName: ptr.To("demo")})
	initialize, initErr := kubeadmtypes.MarshalInitConfigurationForVersion(&bootstrapv1.InitConfiguration{
		NodeRegistration: bootstrapv1.NodeRegistrationOptions{KubeletExtraArgs: arguments("node-labels", "disk=ssd")},
	}, version)
	first, firstErr := cloudinit.NewInitControlPlane(&cloudinit.ControlPlaneInput{
		BaseUserData: cloudinit.BaseUserData{KubernetesVersion: version}, ClusterConfiguration: cluster, InitConfiguration: initialize,
	})
	join, joinErr := kubeadmtypes.MarshalJoinConfigurationForVersion(&bootstrapv1.JoinConfiguration{
		ControlPlane:     &bootstrapv1.JoinControlPlane{},
		NodeRegistration: bootstrapv1.NodeRegistrationOptions{Taints: &[]corev1.Taint{}, KubeletExtraArgs: arguments("node-labels", "disk=ssd")},
		Discovery:        bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: "abcdef.0123456789abcdef"}},
	}, version)
	next, nextErr := cloudinit.NewJoinControlPlane(&cloudinit.ControlPlaneJoinInput{
		BaseUserData: cloudinit.BaseUserData{KubernetesVersion: version}, JoinConfiguration: join,
	})
	if err := errors.Join(clusterErr, initErr, firstErr, joinErr, nextErr); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"disk": "ssd", "node-role.kubernetes.io/control-plane": "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}
	for name, tc := range map[string]struct {
		data   []byte
		taints []corev1.Taint
		token  string
		stores bool
	}{
		"the first":               {data: first, taints: []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}, stores: true},
		"another, without taints": {data: next, taints: []corev1.Taint{}, token: "abcdef.0123456789abcdef"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(tc.data, hostname)
			if err != nil {
				t.Fatal(err)
			}
			if !got.ControlPlane || got.NodeName != hostname || got.Discovery.Token != tc.token || strings.Contains(got.ClusterConfiguration, "clusterName: demo") != tc.stores {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(labels, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.taints, got.Taints); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
		})
	}
}

// Other bootstrap data, in the forms that cloud-init accepts.
func TestRead(t *testing.T) {
	const join = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery: {bootstrapToken: {token: a}}\n"
	with := func(file, command string) string {
		return "#cloud-config\nwrite_files:\n- " + file + "\nruncmd:\n- " + command + "\n"
	}
	for name, tc := range map[string]struct {
		data      string
		wantNone  bool
		wantError string
	}{
		"no kubeadm":            {data: "#cloud-config\n", wantNone: true},
		"a list of words":       {data: with("{path: /join, content: "+quoted(join)+"}", "[kubeadm, join, --config, /join]")},
		"base64":                {data: with("{path: /join, encoding: b64, content: "+base64Of(join)+"}", "kubeadm join --config=/join")},
		"packed":                {data: with("{path: /join, encoding: gz+b64, content: "+packed(t, join)+"}", "kubeadm join --config /join")},
		"appended":              {data: with("{path: /join, content: "+quoted(join)+"}\n- {path: /join, append: true, content: 'dryRun: true'}", "kubeadm join --config /join")},
		"not for cloud-init":    {data: `{"ignition": {}}`, wantError: `it does not begin with "#cloud-config"`},
		"no YAML":               {data: "#cloud-config\n{", wantError: "reading the cloud-config"},
		"no such file":          {data: with("{path: /other}", "kubeadm join --config /join"), wantError: "reads a file that does not exist"},
		"an unknown encoding":   {data: with("{path: /join, encoding: rot13}", "kubeadm join --config /join"), wantError: `unknown encoding "rot13"`},
		"a wrong encoding":      {data: with("{path: /join, encoding: gzip, content: a}", "kubeadm join --config /join"), wantError: "decoding the file /join"},
		"an unknown field":      {data: with("{path: /join, content: "+quoted(join+"taints: []\n")+"}", "kubeadm join --config /join"), wantError: `unknown field "taints"`},
		"without a token":       {data: with("{path: /join, content: "+quoted("apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n")+"}", "kubeadm join --config /join"), wantError: "discovery.bootstrapToken is missing"},
		"a control plane":       {data: with("{path: /join, content: "+quoted(join+"controlPlane: {}\n")+"}", "kubeadm join --config /join")},
		"no cluster to begin":   {data: with("{path: /init, content: "+quoted("apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n")+"}", "kubeadm init --config /init"), wantError: "expected a ClusterConfiguration"},
		"a cluster's beginning": {data: with("{path: /join, content: "+quoted("apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n")+"}", "kubeadm join --config /join"), wantError: `found "InitConfiguration"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read([]byte(tc.data), hostname)
			switch {
			case tc.wantError != "":
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("got %v, want an error with %q", err, tc.wantError)
				}
			case err != nil:
				t.Error(err)
			case (got == nil) != tc.wantNone:
				t.Errorf("got %+v, none expected: %t", got, tc.wantNone)
			}
		})
	}
}
