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

// kwokctlTimeout is how long kwokctl has to start the processes of a control plane and to reach its API server.
const kwokctlTimeout = 2 * time.Minute

// controlPlane is a Kubernetes control plane that kwokctl runs.
type controlPlane struct {
	// cluster is its name in kwokctl.
	cluster string
	// prefix is the prefix of the names of its components.
	prefix string
	// nodes is whether it runs Pods on Nodes, with kube-scheduler and kwok.
	nodes bool
	// kubeconfig is the file that is written for its users.
	kubeconfig string
	// etcd is that of another control plane, which this one uses in place of its own; nil if there is none.
	etcd *Component
}

// newControlPlane includes the state folder in the name, so that contexts of several stacks in one kubeconfig do not
// conflict.
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

// workDir is where kwokctl keeps everything of the control plane.
func (cp *controlPlane) workDir(state folder) string {
	return filepath.Join(state.kwok(), "clusters", cp.cluster)
}

// kwokctl uses this name for kwok, and the names of the binaries for the others.
const kwokController = "kwok-controller"

// components returns the control plane's processes in the order of their start. They take their ports from the list;
// the second port is the one for the peers of etcd.
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

// portsPerControlPlane is how many ports method components takes.
const portsPerControlPlane = 6

// linkLogs links kwokctl's log files, whose paths cannot be configured, to files in the logs folder.
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
		// Otherwise kwokctl sets a new current context in the user's kubeconfig.
		"--kubeconfig", "",
	}
}

// startCommand makes kwokctl start the processes of the control plane that do not run.
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

// runKwokctl runs kwokctl to its end. It calls the check meanwhile, so that it does not wait for a process that cannot
// start.
func runKwokctl(ctx context.Context, state folder, command []string, check func() error) error {
	pidFile, logFile := filepath.Join(state.pids(), "kwokctl.pid"), filepath.Join(state.logs(), "kwokctl.log")
	env := []string{
		"KWOK_WORKDIR=" + state.kwok(),
		// It runs kubectl, which otherwise writes to the user's home directory.
		"KUBECACHEDIR=" + filepath.Join(state.kwok(), "kubectl-cache"),
	}
	if err := startProcess(command, env, logFile, pidFile); err != nil {
		return err
	}
	defer os.Remove(pidFile) //nolint:errcheck // findProcess accepts the id of a process that has ended.
	p, running := findProcess(state, pidFile)
	if !running {
		return nil
	}
	err := Await(ctx, kwokctlTimeout, "kwokctl to start the control plane", func(context.Context) (bool, string, error) {
		if err := check(); err != nil {
			return false, "", err
		}
		return !p.alive(), "it is running; see " + logFile, nil
	})
	if err != nil {
		return errors.Join(err, p.stop(context.WithoutCancel(ctx)))
	}
	return nil
}
