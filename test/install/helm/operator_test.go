// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/charts"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// operator is what stands for a Pod of the installed Deployment.
type operator struct {
	t     *testing.T
	stack *stack.Stack
	// dir has what a Pod would have as files.
	dir     string
	process *exec.Cmd
	ended   chan struct{}
}

// start runs the operator as the installed Deployment says, and waits until it is ready.
func start(ctx context.Context, t *testing.T, s *stack.Stack) *operator {
	t.Helper()
	g := NewWithT(t)
	o := &operator{t: t, stack: s, dir: t.TempDir(), ended: make(chan struct{})}
	deployment := installed(ctx, g, s)
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	o.process = exec.Command(filepath.Join(charts.Root(), "bin", "karpenter-capi"), container.Args...)
	o.process.Env = append(os.Environ(), "KUBECONFIG="+o.identity(ctx, g, pod.ServiceAccountName))
	healthPort := ""
	for _, variable := range container.Env {
		value := o.resolve(g, container, variable)
		switch variable.Name {
		case "CLUSTER_API_KUBECONFIG":
			value = o.mount(ctx, g, pod, value)
		case "HEALTH_PROBE_PORT":
			healthPort = value
		}
		o.process.Env = append(o.process.Env, variable.Name+"="+value)
	}
	log, err := os.Create(filepath.Join(o.dir, "operator.log"))
	g.Expect(err).NotTo(HaveOccurred())
	defer log.Close() //nolint:errcheck // The process has it open.
	o.process.Stdout, o.process.Stderr = log, log
	g.Expect(o.process.Start()).To(Succeed())
	go func(process *exec.Cmd) {
		_ = process.Wait() // How it ended is in its log.
		close(o.ended)
	}(o.process)
	t.Cleanup(o.stop)
	// By this file the stack's guard finds it, should the test be killed.
	g.Expect(os.WriteFile(o.pidFile(), []byte(strconv.Itoa(o.process.Process.Pid)), 0o600)).To(Succeed())
	g.Eventually(ctx, func() (int, error) {
		response, err := http.Get("http://127.0.0.1:" + healthPort + "/readyz")
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}).WithTimeout(time.Minute).WithPolling(poll).Should(Equal(http.StatusOK), "the operator is ready")
	return o
}

// stop ends it. A test that failed shows the end of its log.
func (o *operator) stop() {
	if o.process == nil {
		return
	}
	_ = o.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.ended:
	case <-time.After(20 * time.Second):
		o.t.Error("the operator does not end")
		_ = o.process.Process.Kill()
		<-o.ended
	}
	_ = os.Remove(o.pidFile())
	o.process = nil
	if text, err := os.ReadFile(filepath.Join(o.dir, "operator.log")); err == nil && o.t.Failed() {
		lines := strings.Split(string(text), "\n")
		o.t.Logf("the end of the operator's log:\n%s", strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}

func (o *operator) pidFile() string {
	return filepath.Join(o.stack.Dir(), "pids", "installed-operator.pid")
}

// identity writes a kubeconfig with a token of a ServiceAccount, as a Pod has it.
func (o *operator) identity(ctx context.Context, g *WithT, account string) string {
	token := &authenticationv1.TokenRequest{}
	serviceAccount := &corev1.ServiceAccount{}
	serviceAccount.Namespace, serviceAccount.Name = namespace, account
	g.Expect(o.stack.Workload.SubResource("token").Create(ctx, serviceAccount, token)).To(Succeed())
	config, err := clientcmd.LoadFromFile(o.stack.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(o.dir, "identity")
	g.Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// resolve returns the value of a variable, as the kubelet does.
func (o *operator) resolve(g *WithT, container corev1.Container, variable corev1.EnvVar) string {
	switch from := variable.ValueFrom; {
	case from == nil:
		return variable.Value
	case from.FieldRef != nil:
		g.Expect(from.FieldRef.FieldPath).To(Equal("metadata.namespace"))
		return namespace
	case from.ResourceFieldRef.Resource == "requests.cpu":
		return strconv.FormatInt(container.Resources.Requests.Cpu().MilliValue(), 10)
	default:
		return strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10)
	}
}

// mount writes the file that a Pod would have at a path, and returns where it is.
func (o *operator) mount(ctx context.Context, g *WithT, pod corev1.PodSpec, path string) string {
	for _, mount := range pod.Containers[0].VolumeMounts {
		within, ok := strings.CutPrefix(path, mount.MountPath+"/")
		for _, volume := range pod.Volumes {
			if !ok || volume.Name != mount.Name {
				continue
			}
			secret := &corev1.Secret{}
			g.Expect(o.stack.Workload.Get(ctx, client.ObjectKey{Namespace: namespace, Name: volume.Secret.SecretName}, secret)).To(Succeed())
			for _, item := range volume.Secret.Items {
				if item.Path == within {
					file := filepath.Join(o.dir, "mounted")
					g.Expect(os.WriteFile(file, secret.Data[item.Key], 0o600)).To(Succeed())
					return file
				}
			}
		}
	}
	o.t.Fatalf("the Pod has nothing at %s", path)
	return ""
}

// installed returns the Deployment of the operator.
func installed(ctx context.Context, g *WithT, s *stack.Stack) *appsv1.Deployment {
	deployment := &appsv1.Deployment{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Namespace: namespace, Name: charts.Operator}, deployment)).To(Succeed())
	return deployment
}

// local are values with which the operator can run on this machine: on free ports of 127.0.0.1.
func local(t *testing.T) charts.Values {
	t.Helper()
	var ports []int
	for range 2 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() //nolint:errcheck // Both are free until the operator takes them.
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return charts.Values{
		"settings": charts.Values{"clusterName": stack.ClusterName, "clusterNamespace": stack.ClusterNamespace},
		"controller": charts.Values{
			"metrics":     charts.Values{"port": ports[0]},
			"healthProbe": charts.Values{"port": ports[1]},
			"env": []charts.Values{
				{"name": "BIND_ADDRESS", "value": "127.0.0.1"},
				// A Pod knows this by itself.
				{"name": "LEADER_ELECTION_NAMESPACE", "value": namespace},
			},
		},
	}
}
