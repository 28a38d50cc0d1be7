// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// Operator replaces a Pod of the installed Deployment.
type Operator struct {
	t       *testing.T
	process *exec.Cmd
	ended   chan error
	log     string
}

// Installed returns the Deployment of the operator.
func Installed(ctx context.Context, g gomega.Gomega, s *stack.Stack) *appsv1.Deployment {
	deployments := &appsv1.DeploymentList{}
	g.Expect(home(s).List(ctx, deployments, client.InNamespace(Namespace))).To(gomega.Succeed())
	g.Expect(deployments.Items).To(gomega.HaveLen(1))
	return &deployments.Items[0]
}

// home returns the client of the cluster in which the operator is installed.
func home(s *stack.Stack) client.Client {
	if s.Placement() == stack.InManagement {
		return s.Management
	}
	return s.Workload
}

// Start runs a binary of the operator as the installed Deployment specifies, and waits until it is ready. If it still
// runs at the end of the test, it is stopped.
func Start(ctx context.Context, t *testing.T, s *stack.Stack, binary string) *Operator {
	t.Helper()
	g := gomega.NewWithT(t)
	pod := &Installed(ctx, g, s).Spec.Template.Spec
	container := &pod.Containers[0]
	dir := t.TempDir()

	ports, err := stack.FreePorts(2)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	// A Pod has its own addresses to listen on.
	arguments := append(slices.Clone(container.Args),
		"--bind-address=127.0.0.1", fmt.Sprintf("--metrics-port=%d", ports[0]), fmt.Sprintf("--health-probe-port=%d", ports[1]))
	environment := []string{"KUBECONFIG=" + identity(ctx, g, s, pod.ServiceAccountName, dir)}
	for i := range container.Env {
		variable := &container.Env[i]
		value, err := valueOf(variable, container)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		if variable.Name == "CLUSTER_API_KUBECONFIG" || variable.Name == "WORKLOAD_KUBECONFIG" {
			value = mounted(ctx, g, s, pod, value, dir)
		}
		environment = append(environment, variable.Name+"="+value)
	}

	o := &Operator{t: t, ended: make(chan error, 1), log: filepath.Join(s.LogDir(), "installed-operator.log")}
	log, err := os.OpenFile(o.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer log.Close() //nolint:errcheck // The process has it open.
	o.process = exec.Command(binary, arguments...)
	o.process.Env, o.process.Stdout, o.process.Stderr = environment, log, log
	g.Expect(o.process.Start()).To(gomega.Succeed())
	go func() { o.ended <- o.process.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of %s:\n%s", o.log, (&stack.Component{LogFile: o.log}).LogTail(40))
		}
		o.Stop()
	})
	// The stack's guard finds it by this file if the test is killed.
	pidFile := filepath.Join(s.Dir(), "pids", "installed-operator.pid")
	g.Expect(os.WriteFile(pidFile, []byte(strconv.Itoa(o.process.Process.Pid)), 0o600)).To(gomega.Succeed())

	g.Expect(s.Await(ctx, time.Minute, "the operator to be ready", func(ctx context.Context) (bool, string, error) {
		select {
		case err := <-o.ended:
			o.ended <- err
			return false, "", errors.Join(fmt.Errorf("it has ended; see %s", o.log), err)
		default:
			return probe(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[1]))
		}
	})).To(gomega.Succeed())
	return o
}

// Stop ends the process gracefully, as a kubelet does.
func (o *Operator) Stop() {
	_ = o.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-o.ended:
		o.ended <- err
	case <-time.After(30 * time.Second):
		_ = o.process.Process.Kill()
		o.ended <- <-o.ended
		o.t.Error("the operator did not end within 30 seconds")
	}
}

// identity writes a kubeconfig with the identity of the ServiceAccount, and returns its path.
func identity(ctx context.Context, g gomega.Gomega, s *stack.Stack, name, dir string) string {
	account, request := &corev1.ServiceAccount{}, &authenticationv1.TokenRequest{}
	account.Namespace, account.Name = Namespace, name
	g.Expect(home(s).SubResource("token").Create(ctx, account, request)).To(gomega.Succeed())
	kubeconfig := s.Kubeconfig()
	if s.Placement() == stack.InManagement {
		kubeconfig = s.ManagementKubeconfig()
	}
	config, err := clientcmd.LoadFromFile(kubeconfig)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: request.Status.Token}
	}
	file := filepath.Join(dir, "kubeconfig")
	g.Expect(clientcmd.WriteToFile(*config, file)).To(gomega.Succeed())
	return file
}

// valueOf returns the value of a variable as a kubelet resolves it.
func valueOf(variable *corev1.EnvVar, container *corev1.Container) (string, error) {
	source := variable.ValueFrom
	switch {
	case source == nil:
		return variable.Value, nil
	case source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.namespace":
		return Namespace, nil
	case source.FieldRef != nil && source.FieldRef.FieldPath == "spec.nodeName":
		return "", nil // the operator runs on no Node
	case source.ResourceFieldRef != nil && source.ResourceFieldRef.Resource == "requests.cpu" && source.ResourceFieldRef.Divisor.MilliValue() == 1:
		return strconv.FormatInt(container.Resources.Requests.Cpu().MilliValue(), 10), nil
	case source.ResourceFieldRef != nil && source.ResourceFieldRef.Resource == "limits.memory" && source.ResourceFieldRef.Divisor.IsZero():
		return strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10), nil
	default:
		return "", fmt.Errorf("variable %s: this test does not know its source %v", variable.Name, source)
	}
}

// mounted writes the file that a Pod would have at a path, from a Secret, and returns its path.
func mounted(ctx context.Context, g gomega.Gomega, s *stack.Stack, pod *corev1.PodSpec, path, dir string) string {
	for _, mount := range pod.Containers[0].VolumeMounts {
		within, ok := strings.CutPrefix(path, mount.MountPath+"/")
		for _, volume := range pod.Volumes {
			if !ok || volume.Name != mount.Name {
				continue
			}
			secret := &corev1.Secret{}
			g.Expect(home(s).Get(ctx, client.ObjectKey{Namespace: Namespace, Name: volume.Secret.SecretName}, secret)).To(gomega.Succeed())
			for _, item := range volume.Secret.Items {
				if item.Path == within {
					g.Expect(secret.Data).To(gomega.HaveKey(item.Key))
					file := filepath.Join(dir, "mounted")
					g.Expect(os.WriteFile(file, secret.Data[item.Key], 0o600)).To(gomega.Succeed())
					return file
				}
			}
		}
	}
	g.Expect(path).To(gomega.BeEmpty(), "the Pod has nothing there")
	return ""
}

func probe(ctx context.Context, url string) (bool, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err.Error(), nil
	}
	return response.StatusCode == http.StatusOK, response.Status, response.Body.Close()
}
