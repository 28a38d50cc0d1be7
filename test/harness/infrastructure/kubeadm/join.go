// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstreamv1beta4"
	"sigs.k8s.io/yaml"
)

// Join is what a machine that has booted does.
type Join struct {
	// NodeName is the name of its Node.
	NodeName string
	// Taints and Labels are those that its kubelet registers the Node with.
	Taints []corev1.Taint
	Labels map[string]string
	// Discovery is how it finds the API server, and knows that it is the right one. The first machine of a control plane has none.
	Discovery upstreamv1beta4.BootstrapTokenDiscovery
	// ControlPlane is whether the machine runs a control plane.
	ControlPlane bool
	// ClusterConfiguration is what the first machine of a control plane stores in the cluster; empty for all others.
	ClusterConfiguration string

	kubelet *kubelet
}

// command is the command that joins the cluster, or creates it, with the file of its configuration.
var command = regexp.MustCompile(`\bkubeadm (join|init) --config[ =](\S+)`)

// Read reads the bootstrap data of a machine with a host name. It returns nil if no command of it is `kubeadm join` or
// `kubeadm init`.
func Read(data []byte, hostname string) (*Join, error) {
	config, err := parseCloudConfig(data, hostname)
	if err != nil {
		return nil, err
	}
	line, found := lo.Find(config.commands(), command.MatchString)
	if !found {
		return nil, nil
	}
	arguments := command.FindStringSubmatch(line)
	path := arguments[2]
	content, found, err := config.content(path)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("the command %q reads a file that does not exist", line)
	}
	read := lo.Ternary(arguments[1] == "init", readInit, readJoin)
	join, err := read(content, hostname)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return join, nil
}

// readJoin reads the configuration of `kubeadm join`.
func readJoin(content, hostname string) (*Join, error) {
	config := &upstreamv1beta4.JoinConfiguration{}
	if _, err := readDocument(content, "JoinConfiguration", config); err != nil {
		return nil, err
	}
	if config.Discovery.BootstrapToken == nil {
		return nil, errors.New("discovery.bootstrapToken is missing")
	}
	join, err := newJoin(config.NodeRegistration, config.ControlPlane != nil, hostname)
	if err != nil {
		return nil, err
	}
	join.Discovery = *config.Discovery.BootstrapToken
	return join, nil
}

// readInit reads the configuration of `kubeadm init`.
func readInit(content, hostname string) (*Join, error) {
	config := &upstreamv1beta4.InitConfiguration{}
	_, err := readDocument(content, "InitConfiguration", config)
	cluster, clusterErr := readDocument(content, "ClusterConfiguration", &upstreamv1beta4.ClusterConfiguration{})
	if err := errors.Join(err, clusterErr); err != nil {
		return nil, err
	}
	join, err := newJoin(config.NodeRegistration, true, hostname)
	if err != nil {
		return nil, err
	}
	join.ClusterConfiguration = cluster
	return join, nil
}

// readDocument reads the document of a kind, which must have only fields that kubeadm knows, and returns its text.
func readDocument(content, kind string, into any) (string, error) {
	want := upstreamv1beta4.GroupVersion.WithKind(kind)
	var found []string
	for document := range strings.SplitSeq("\n"+content, "\n---") {
		var is metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &is); err != nil {
			return "", err
		}
		if is.GroupVersionKind() == want {
			return strings.TrimSpace(document) + "\n", yaml.UnmarshalStrict([]byte(document), into)
		}
		if is.Kind != "" {
			found = append(found, fmt.Sprintf("%q of %q", is.Kind, is.APIVersion))
		}
	}
	return "", fmt.Errorf("expected a %s of %s, which Kubernetes v1.31 and newer have, found %s",
		kind, want.GroupVersion(), lo.CoalesceOrEmpty(strings.Join(found, " and "), "nothing"))
}

// ControlPlaneLabel is what kubeadm labels and taints the Nodes of the control plane with (kubernetes:
// cmd/kubeadm/app/constants/constants.go, LabelNodeRoleControlPlane).
const ControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// newJoin decides what kubeadm and the kubelet do with the registration of a Node.
func newJoin(registration upstreamv1beta4.NodeRegistrationOptions, controlPlane bool, hostname string) (*Join, error) {
	kubelet, err := newKubelet(registration.KubeletExtraArgs)
	if err != nil {
		return nil, err
	}
	join := &Join{
		NodeName: strings.ToLower(lo.CoalesceOrEmpty(kubelet.hostname, registration.Name, hostname)), Taints: registration.Taints,
		Labels: kubelet.labels, ControlPlane: controlPlane, kubelet: kubelet,
	}
	if controlPlane {
		join.Labels = lo.Assign(join.Labels, map[string]string{ControlPlaneLabel: "", corev1.LabelNodeExcludeBalancers: ""})
		if join.Taints == nil {
			join.Taints = []corev1.Taint{{Key: ControlPlaneLabel, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	if kubelet.taints != nil {
		// kubeadm passes its taints as the same argument, which those of the user replace (kubernetes:
		// cmd/kubeadm/app/phases/kubelet/flags.go).
		join.Taints = *kubelet.taints
	}
	return join, nil
}
