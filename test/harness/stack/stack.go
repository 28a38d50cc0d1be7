// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/proxy"
)

// Stack is a stack that was started by Up or found by Open.
type Stack struct {
	// Workload and Management are clients of the two clusters, which may be the same one. They cache nothing.
	Workload, Management client.Client

	// WorkloadProxy and ManagementProxy are between the operator and the two API servers with Options.Proxied.
	WorkloadProxy, ManagementProxy *proxy.Proxy

	state  folder
	record record

	// Only the owner has it.
	lock  *os.File
	guard *guard
}

// record is the content of stack.json.
type record struct {
	// Owner is the process that started the stack.
	Owner int `json:"owner"`

	// BinDir is the folder of the binaries.
	BinDir string `json:"binDir"`

	// ClusterAPI is the version of Cluster API.
	ClusterAPI string `json:"clusterAPI"`

	// Placement is where the operator is.
	Placement Placement `json:"placement"`

	// ControlPlanes are the names of the control planes in kwokctl, each with the command that starts its processes
	// that do not run.
	ControlPlanes map[string][]string `json:"controlPlanes"`

	// Components are the processes in the order of their start.
	Components []*Component `json:"components"`

	// OperatorCommand starts the operator, which is not always among the components.
	OperatorCommand []string `json:"operatorCommand,omitempty"`
	OperatorEnv     []string `json:"operatorEnv,omitempty"`
}

// Open returns the stack in a state folder. It is no error if some of its processes do not run; see Status.
func Open(dir string) (*Stack, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Stack{state: folder(dir)}
	data, err := os.ReadFile(s.state.record())
	if errors.Is(err, os.ErrNotExist) {
		return nil, &NotFoundError{Dir: dir}
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &s.record); err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.state.record(), err)
	}
	// A stack that failed early has no kubeconfigs.
	if err := s.connect(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return s, nil
}

// save writes the record atomically.
func (s *Stack) save() error {
	data, err := json.MarshalIndent(s.record, "", "  ")
	if err != nil {
		return err
	}
	temporary := s.state.record() + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, s.state.record())
}

// Dir returns the state folder.
func (s *Stack) Dir() string { return string(s.state) }

// LogDir returns the folder of the logs, which stay when the stack is down.
func (s *Stack) LogDir() string { return s.state.logs() }

// Kubeconfig returns the file for the workload cluster, which has Pods, Nodes, NodePools, NodeClaims and templates.
func (s *Stack) Kubeconfig() string { return s.state.kubeconfig() }

// ManagementKubeconfig returns the file for the management cluster, which has Cluster API's objects.
func (s *Stack) ManagementKubeconfig() string { return s.state.managementKubeconfig() }

// ClusterAPIVersion returns the version of Cluster API.
func (s *Stack) ClusterAPIVersion() string { return s.record.ClusterAPI }

// Separate reports whether the two clusters are different ones.
func (s *Stack) Separate() bool { return s.record.Placement.Separate() }

// Placement returns where the operator is.
func (s *Stack) Placement() Placement { return s.record.Placement }

// OperatorCommand returns the environment and the command that run the operator on this stack.
func (s *Stack) OperatorCommand() (env, command []string) {
	return s.record.OperatorEnv, s.record.OperatorCommand
}

// Components returns the stack's processes in the order of their start.
func (s *Stack) Components() []Component {
	components := make([]Component, 0, len(s.record.Components))
	for _, c := range s.record.Components {
		components = append(components, *c)
	}
	return components
}

// Component returns a process of the stack by its name.
func (s *Stack) Component(name string) (*Component, error) {
	for _, c := range s.record.Components {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("the stack in %s has no component %q", s.state, name)
}

// running returns how many of the processes run.
func (s *Stack) running() int {
	count := 0
	for _, c := range s.record.Components {
		if _, ok := findProcess(s.state, c.PIDFile); ok {
			count++
		}
	}
	return count
}
