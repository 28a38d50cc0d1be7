// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/samber/lo"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// startControlPlanes starts the one or the two control planes, or the second one for another stack.
func (b *builder) startControlPlanes(ctx context.Context) error {
	if other := b.opts.Manages; other != nil {
		if err := copyFile(other.Kubeconfig(), b.Kubeconfig()); err != nil {
			return err
		}
	} else if err := b.startControlPlane(ctx, newControlPlane(b.state, "workload", "", true, b.Kubeconfig())); err != nil {
		return err
	}
	switch other := b.opts.NeighbourOf; {
	case other != nil:
		if err := copyFile(other.ManagementKubeconfig(), b.ManagementKubeconfig()); err != nil {
			return err
		}
	case b.opts.Placement.Separate():
		management := newControlPlane(b.state, "management", ManagementPrefix, false, b.ManagementKubeconfig())
		if b.opts.OneEtcd {
			var err error
			if management.etcd, err = b.Component(Etcd); err != nil {
				return err
			}
		}
		if err := b.startControlPlane(ctx, management); err != nil {
			return err
		}
	default:
		if err := copyFile(b.Kubeconfig(), b.ManagementKubeconfig()); err != nil {
			return err
		}
	}
	if err := b.connect(); err != nil {
		return err
	}
	return b.createAccounts(ctx)
}

// copyFile copies a kubeconfig.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

func (b *builder) startControlPlane(ctx context.Context, cp *controlPlane) error {
	ports := b.take(portsPerControlPlane)
	configFile := filepath.Join(b.state.kwok(), cp.cluster+".yaml")
	policyFile := filepath.Join(b.state.kwok(), cp.cluster+"-audit.yaml")
	stagesFile := filepath.Join(b.state.kwok(), cp.cluster+"-stages.yaml")
	components := cp.components(b.state, ports)
	if err := errors.Join(
		cp.writeConfig(b.opts, ports, configFile, policyFile, stagesFile),
		cp.linkLogs(b.state, components),
	); err != nil {
		return err
	}
	start := cp.startCommand(b.opts, configFile)
	b.record.Components = append(b.record.Components, components...)
	b.record.ControlPlanes[cp.cluster] = start
	if err := b.save(); err != nil {
		return err
	}
	if err := runKwokctl(ctx, b.state, cp.createCommand(b.opts, configFile), func() error {
		// The other processes can have ended because the API server was slow to start.
		return b.checkAlive(started(components[:2]))
	}); err != nil {
		return err
	}
	if err := b.checkAlive(components[:2]); err != nil {
		return err
	}
	if err := Await(ctx, readyTimeout, components[1].Name+" to be ready", func(ctx context.Context) (bool, string, error) {
		ready, found := components[1].probe(ctx)
		return ready, found, b.checkAlive(components[:2])
	}); err != nil {
		return err
	}
	if b.checkAlive(components) != nil {
		if err := b.startControlPlaneAgain(ctx, cp.cluster); err != nil {
			return err
		}
	}
	if err := cp.writeKubeconfig(b.state); err != nil {
		return err
	}
	return b.awaitReady(ctx, components...)
}

// started returns the components that kwokctl has started. kwokctl creates a pid file first, and then writes the id.
func started(components []*Component) []*Component {
	return lo.Filter(components, func(c *Component, _ int) bool {
		file, err := os.Stat(c.PIDFile)
		return err == nil && file.Size() > 0
	})
}

// startControlPlaneAgain makes kwokctl start the processes of a control plane that do not run.
func (s *Stack) startControlPlaneAgain(ctx context.Context, cluster string) error {
	for _, c := range s.record.Components {
		if c.ControlPlane != cluster {
			continue
		}
		// kwokctl checks only whether a process with this id exists.
		if _, ok := findProcess(s.state, c.PIDFile); !ok {
			if err := os.Remove(c.PIDFile); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return runKwokctl(ctx, s.state, s.record.ControlPlanes[cluster], func() error { return nil })
}

// createAPIs creates all CRDs and Cluster API's webhook configurations.
func (b *builder) createAPIs(ctx context.Context) error {
	chain, err := createCertificate(b.state)
	if err != nil {
		return err
	}
	b.hooks = map[string]*webhooks{ClusterAPI: b.modules.webhooksOf("core", "cluster-api", "capi-")}
	if b.opts.Kubeadm {
		b.hooks[KubeadmBootstrap] = b.modules.webhooksOf("bootstrap/kubeadm", "bootstrap-kubeadm", "capi-kubeadm-bootstrap-")
	}
	if b.opts.Topology {
		b.hooks[KubeadmControl] = b.modules.webhooksOf("controlplane/kubeadm", "control-plane-kubeadm", "capi-kubeadm-control-plane-")
	}
	if p := b.opts.Provider; p != nil {
		b.hooks[RealProvider] = &webhooks{
			prefix: RealProvider + "-", manifests: b.opts.binary(filepath.Join(p.Dir, "webhooks.yaml")), crds: b.opts.binary(filepath.Join(p.Dir, "crds")),
			labels: p.labels(),
		}
	}
	for component, hooks := range b.hooks {
		hooks.component, hooks.port, hooks.caBundle = component, b.take(1)[0], chain
	}
	var workload []*apiextensionsv1.CustomResourceDefinition
	if !b.opts.WithoutCRDs && b.opts.Manages == nil {
		if workload, err = workloadCRDs(b.modules, b.opts.KwokInstanceTypes != ""); err != nil {
			return err
		}
	}
	if b.opts.NeighbourOf != nil {
		return createCRDs(ctx, b.Workload, workload)
	}
	management, err := managementCRDs(b.hooks)
	if err != nil {
		return err
	}
	errs := []error{createCRDs(ctx, b.Workload, workload), createCRDs(ctx, b.Management, management)}
	for _, hooks := range b.hooks {
		errs = append(errs, hooks.configure(ctx, b.Management))
	}
	return errors.Join(errs...)
}

// ownComponent is a component that is not part of a control plane.
func (b *builder) ownComponent(name string, port int, env []string, command ...string) *Component {
	return &Component{
		Name:      name,
		Port:      port,
		LogFile:   filepath.Join(b.state.logs(), name+".log"),
		HealthURL: fmt.Sprintf("http://%s/readyz", address(port)),
		PIDFile:   filepath.Join(b.state.pids(), name+".pid"),
		Command:   command,
		Env:       env,
	}
}

func (b *builder) startClusterAPI(ctx context.Context) error {
	return b.startManager(ctx, ClusterAPI, binClusterAPI, nil, append(unlimited(), fmt.Sprintf("--feature-gates=ClusterTopology=%t", b.opts.Topology))...)
}

func (b *builder) startKubeadmBootstrap(ctx context.Context) error {
	return b.startManager(ctx, KubeadmBootstrap, binKubeadmBootstrap, nil, unlimited()...)
}

func (b *builder) startKubeadmControl(ctx context.Context) error {
	return b.startManager(ctx, KubeadmControl, binKubeadmControl, nil, append(unlimited(), "--feature-gates=ClusterTopology=true")...)
}

func (b *builder) startProvider(ctx context.Context) error {
	p := b.opts.Provider
	arguments := append([]string{"--leader-elect=false"}, p.Arguments...)
	if !p.Limited {
		arguments = append(arguments, unlimited()...)
	}
	return b.startManager(ctx, RealProvider, p.manager(), p.Env, arguments...)
}

// unlimited returns the arguments of a manager for the rates of its requests. The defaults protect a real API server.
func unlimited() []string {
	return []string{"--kube-api-qps=1000", "--kube-api-burst=2000", "--clustercache-client-qps=1000", "--clustercache-client-burst=2000"}
}

// startManager starts a manager of Cluster API, or of a provider, whose flags are the same.
func (b *builder) startManager(ctx context.Context, name, binary string, env []string, arguments ...string) error {
	ports := b.take(2)
	return b.start(ctx, b.ownComponent(name, ports[0], env, append([]string{
		b.opts.binary(binary),
		"--kubeconfig=" + b.state.managementAccount(name),
		fmt.Sprintf("--webhook-port=%d", b.hooks[name].port),
		"--webhook-cert-dir=" + b.state.certificates(),
		"--health-addr=" + address(ports[0]),
		"--diagnostics-address=" + address(ports[1]),
		"--insecure-diagnostics=true",
	}, arguments...)...))
}

func (b *builder) startInfrastructure(ctx context.Context) error {
	port := b.take(1)[0]
	command := []string{
		b.opts.binary(binInfrastructure),
		"--kubeconfig=" + b.state.managementAccount(Infrastructure),
		"--workload-kubeconfig=" + b.state.workloadAccount(Infrastructure),
		"--health-addr=" + address(port),
	}
	if b.opts.HasNeighbour || b.opts.NeighbourOf != nil {
		command = append(command, "--cluster-name="+b.opts.clusterName())
	}
	return b.start(ctx, b.ownComponent(Infrastructure, port, nil, command...))
}

func (b *builder) startOperator(ctx context.Context) error {
	ports := b.take(2)
	if b.opts.KwokInstanceTypes != "" {
		return b.startKarpenterKwok(ctx, ports)
	}
	if b.opts.Proxied {
		if err := b.startProxies(); err != nil {
			return err
		}
	}
	env, kubeconfig := b.opts.Placement.kubeconfigArgs(b.OperatorAccount(b.opts.named(Operator)))
	command := append([]string{b.opts.binary(binOperator)}, kubeconfig...)
	command = append(command,
		"--cluster-name="+b.opts.clusterName(),
		"--cluster-namespace="+ClusterNamespace,
		"--allowed-secrets="+b.opts.named(BootstrapSecretName),
		"--bind-address="+localhost,
		fmt.Sprintf("--health-probe-port=%d", ports[0]),
		fmt.Sprintf("--metrics-port=%d", ports[1]),
		// Only this machine can reach them.
		"--insecure-diagnostics=true",
		"--disable-leader-election=true",
	)
	command = append(command, b.opts.OperatorArgs...)
	b.record.OperatorEnv, b.record.OperatorCommand = env, command
	if b.opts.WithoutOperator {
		return b.save()
	}
	return b.start(ctx, b.ownComponent(Operator, ports[0], env, command...))
}

// startKarpenterKwok starts Karpenter with its own simulated provider. Like in each command, there must be a path in the
// state folder among the arguments.
func (b *builder) startKarpenterKwok(ctx context.Context, ports []int) error {
	command := append([]string{
		b.opts.binary(binKarpenterKwok),
		"--instance-types-file-path=" + b.opts.KwokInstanceTypes,
		fmt.Sprintf("--health-probe-port=%d", ports[0]),
		fmt.Sprintf("--metrics-port=%d", ports[1]),
		"--disable-leader-election=true",
	}, b.opts.OperatorArgs...)
	env := []string{"KUBECONFIG=" + b.state.workloadAccount(KarpenterKwok)}
	return b.start(ctx, b.ownComponent(KarpenterKwok, ports[0], env, command...))
}

func indent(text string) string {
	return "  | " + strings.ReplaceAll(text, "\n", "\n  | ")
}
