// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
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
	// Discovery is how it finds the API server, and knows that it is the right one.
	Discovery upstreamv1beta4.BootstrapTokenDiscovery

	kubelet *kubelet
}

// joinCommand is the command that joins the cluster, with the file of its configuration.
var joinCommand = regexp.MustCompile(`\bkubeadm join --config[ =](\S+)`)

// Read reads the bootstrap data of a machine with a host name. It returns nil if no command of it is `kubeadm join`.
func Read(data []byte, hostname string) (*Join, error) {
	config, err := parseCloudConfig(data, hostname)
	if err != nil {
		return nil, err
	}
	command, found := lo.Find(config.commands(), joinCommand.MatchString)
	if !found {
		return nil, nil
	}
	path := joinCommand.FindStringSubmatch(command)[1]
	content, found, err := config.content(path)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("the command %q reads a file that does not exist", command)
	}
	join, err := parseJoinConfiguration([]byte(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newJoin(join, hostname)
}

// parseJoinConfiguration reads the configuration of `kubeadm join`, which must have only fields that kubeadm knows.
func parseJoinConfiguration(data []byte) (*upstreamv1beta4.JoinConfiguration, error) {
	join := &upstreamv1beta4.JoinConfiguration{}
	for document := range strings.SplitSeq("\n"+string(data), "\n---") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), join); err != nil {
			return nil, err
		}
	}
	if want := upstreamv1beta4.GroupVersion.String(); join.APIVersion != want || join.Kind != "JoinConfiguration" {
		return nil, fmt.Errorf("expected a JoinConfiguration of %s, which Kubernetes v1.31 and newer have, found %q of %q", want, join.Kind, join.APIVersion)
	}
	return join, nil
}

// newJoin decides what kubeadm and the kubelet do with a configuration.
func newJoin(config *upstreamv1beta4.JoinConfiguration, hostname string) (*Join, error) {
	if config.ControlPlane != nil {
		return nil, errors.New("a worker does not join as a control plane")
	}
	if config.Discovery.BootstrapToken == nil {
		return nil, errors.New("discovery.bootstrapToken is missing")
	}
	registration := config.NodeRegistration
	kubelet, err := newKubelet(registration.KubeletExtraArgs)
	if err != nil {
		return nil, err
	}
	join := &Join{
		NodeName: strings.ToLower(lo.CoalesceOrEmpty(kubelet.hostname, registration.Name, hostname)), Taints: registration.Taints,
		Labels: kubelet.labels, Discovery: *config.Discovery.BootstrapToken, kubelet: kubelet,
	}
	if kubelet.taints != nil {
		// kubeadm passes its taints as the same argument, which those of the user replace (kubernetes:
		// cmd/kubeadm/app/phases/kubelet/flags.go).
		join.Taints = *kubelet.taints
	}
	return join, nil
}
