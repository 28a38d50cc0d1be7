// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kwokctlTimeout is for kwokctl to start the processes of a control plane and to reach its API server.
const kwokctlTimeout = 2 * time.Minute

// controlPlane is a Kubernetes control plane that kwokctl runs.
type controlPlane struct {
	// cluster is its name for kwokctl.
	cluster string
	// prefix is that of the names of its components.
	prefix string
	// nodes is whether it runs Pods on Nodes: with kube-scheduler and kwok.
	nodes bool
	// kubeconfig is the file that is written for its users.
	kubeconfig string
}

// newControlPlane names the control plane after the state folder, too: where contexts of several stacks are in one
// kubeconfig, they do not clash.
func newControlPlane(state folder, role, prefix string, nodes bool, kubeconfig string) *controlPlane {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(state))
	return &controlPlane{
		cluster:    fmt.Sprintf("%s-%08x", role, hash.Sum32()),
		prefix:     prefix,
		nodes:      nodes,
		kubeconfig: kubeconfig,
	}
}

// workDir is where kwokctl keeps all of the control plane.
func (cp *controlPlane) workDir(state folder) string {
	return filepath.Join(state.kwok(), "clusters", cp.cluster)
}

// kwokctl knows kwok by this name; the others by those of their binaries.
const kwokController = "kwok-controller"

// components returns the control plane's processes in the order of their start. They take their ports from the list;
// the second that is taken is the one at which etcd would talk to its peers.
func (cp *controlPlane) components(state folder, ports []int) []*Component {
	etcd, _, apiServer, manager, scheduler, kwok := ports[0], ports[1], ports[2], ports[3], ports[4], ports[5]
	component := func(name, process, scheme string, port int, path string) *Component {
		return &Component{
			Name:         cp.prefix + name,
			Port:         port,
			LogFile:      filepath.Join(state.logs(), cp.prefix+name+".log"),
			HealthURL:    fmt.Sprintf("%s://%s%s", scheme, address(port), path),
			PIDFile:      filepath.Join(cp.workDir(state), "pids", process+".pid"),
			ControlPlane: cp.cluster,
		}
	}
	components := []*Component{
		component(Etcd, Etcd, "http", etcd, "/readyz"),
		component(APIServer, APIServer, "https", apiServer, "/readyz"),
		component(ControllerManager, ControllerManager, "https", manager, "/healthz"),
	}
	if cp.nodes {
		components = append(components,
			component(Scheduler, Scheduler, "https", scheduler, "/readyz"),
			component(Kwok, kwokController, "http", kwok, "/healthz"),
		)
	}
	return components
}

// portsPerControlPlane is how many ports components takes.
const portsPerControlPlane = 6

// linkLogs makes kwokctl's log files, whose place it does not let us choose, those in the logs folder.
func (cp *controlPlane) linkLogs(state folder, components []*Component) error {
	dir := filepath.Join(cp.workDir(state), "logs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	links := map[string]string{"audit.log": filepath.Join(state.logs(), cp.prefix+"audit.log")}
	for _, c := range components {
		links[strings.TrimSuffix(filepath.Base(c.PIDFile), ".pid")+".log"] = c.LogFile
	}
	var errs []error
	for name, target := range links {
		errs = append(errs, os.WriteFile(target, nil, 0o600), os.Symlink(target, filepath.Join(dir, name)))
	}
	return errors.Join(errs...)
}

// createCommand makes kwokctl create and start the control plane.
func (cp *controlPlane) createCommand(opts *Options, configFile string) []string {
	return []string{
		opts.binary(binKwokctl), "create", "cluster", "--name", cp.cluster, "--config", configFile,
		// Else the user's own kubeconfig gets a new current context.
		"--kubeconfig", "",
	}
}

// startCommand makes kwokctl start those of the control plane's processes that do not run.
func (cp *controlPlane) startCommand(opts *Options, configFile string) []string {
	return []string{opts.binary(binKwokctl), "start", "cluster", "--name", cp.cluster, "--config", configFile}
}

// writeKubeconfig writes a kubeconfig that needs no other file.
func (cp *controlPlane) writeKubeconfig(state folder) error {
	config, err := clientcmd.LoadFromFile(filepath.Join(cp.workDir(state), "kubeconfig.yaml"))
	if err != nil {
		return err
	}
	if err := api.FlattenConfig(config); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, cp.kubeconfig)
}

// runKwokctl runs kwokctl to its end. The check is asked in between, so that a process which does not start need not
// be waited for.
func runKwokctl(ctx context.Context, state folder, command []string, check func() error) error {
	pidFile, logFile := filepath.Join(state.pids(), "kwokctl.pid"), filepath.Join(state.logs(), "kwokctl.log")
	env := []string{
		"KWOK_WORKDIR=" + state.kwok(),
		// It runs kubectl, which else writes to the user's home.
		"KUBECACHEDIR=" + filepath.Join(state.kwok(), "kubectl-cache"),
	}
	if err := startProcess(command, env, logFile, pidFile); err != nil {
		return err
	}
	defer os.Remove(pidFile) //nolint:errcheck // A process that is gone is told from one that is not.
	p, running := findProcess(state, pidFile)
	if !running {
		return nil
	}
	err := Await(ctx, kwokctlTimeout, "kwokctl to start the control plane", func(context.Context) (bool, string, error) {
		if err := check(); err != nil {
			return false, "", err
		}
		return !p.alive(), "it runs; see " + logFile, nil
	})
	if err != nil {
		return errors.Join(err, p.stop(context.WithoutCancel(ctx)))
	}
	return nil
}
