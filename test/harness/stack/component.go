// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// The components of a stack. With separate control planes, those of the management cluster have ManagementPrefix.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	ClusterAPI        = "cluster-api"
	KubeadmBootstrap  = "kubeadm-bootstrap"
	KubeadmControl    = "kubeadm-control-plane"
	Infrastructure    = "simulated-infrastructure"
	RealProvider      = "infrastructure-provider" // of Options.Provider
	Operator          = "operator"
	KarpenterKwok     = "karpenter-kwok"

	ManagementPrefix = "management-"
)

// Component is one process of a stack.
type Component struct {
	// Name is one of the constants in this file.
	Name string `json:"name"`

	// Port is the port on 127.0.0.1 where it serves.
	Port int `json:"port"`

	// LogFile is the file with all of its output.
	LogFile string `json:"logFile"`

	// HealthURL returns 200 when it is ready.
	HealthURL string `json:"healthURL"`

	// PIDFile is the file with its process id.
	PIDFile string `json:"pidFile"`

	// ControlPlane is the name of the kwokctl cluster that it is part of; empty if it is started by its command.
	ControlPlane string `json:"controlPlane,omitempty"`

	// Command starts it, with Env added to the environment.
	Command []string `json:"command,omitempty"`
	Env     []string `json:"env,omitempty"`
}

// probe reports whether the component is ready, and if not, why.
func (c *Component) probe(ctx context.Context) (bool, string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.HealthURL, nil)
	if err != nil {
		return false, err.Error()
	}
	response, err := healthClient.Do(request)
	if err != nil {
		return false, fmt.Sprintf("not ready (%s)", lastCause(err))
	}
	defer response.Body.Close() //nolint:errcheck // It is only read.
	body, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if response.StatusCode != http.StatusOK {
		return false, fmt.Sprintf("not ready (%s: %s)", response.Status, failedChecks(string(body)))
	}
	return true, "ready"
}

// healthClient trusts any certificate, because each control plane has its own authority and nothing secret is sent.
var healthClient = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // See above.
	DisableKeepAlives: true,
}}

// failedChecks returns the lines of a Kubernetes health endpoint that name what failed.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSpace(strings.TrimPrefix(line, "[-]")))
		}
	}
	if len(failed) == 0 {
		return strings.TrimSpace(body)
	}
	return strings.Join(failed, ", ")
}

// lastCause returns the innermost error, because the outer ones only repeat the URL.
func lastCause(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// LogTail returns the last lines of the component's log.
func (c *Component) LogTail(lines int) string {
	const most = 64 << 10
	file, err := os.Open(c.LogFile)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer file.Close() //nolint:errcheck // It is only read.
	if info, err := file.Stat(); err == nil && info.Size() > most {
		_, _ = file.Seek(-most, io.SeekEnd)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return fmt.Sprintf("(reading the log: %v)", err)
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
