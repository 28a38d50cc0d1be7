// SPDX-License-Identifier: Apache-2.0

//go:build install

package clusterctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

// installedOperator is the operator as a Deployment has it, run as a process.
type installedOperator struct {
	command *exec.Cmd
	ended   chan error
}

// runInstalled starts the operator that is installed in a namespace, with the rights of its ServiceAccount and no others,
// and waits until it is ready. The test stops it at its end if it still runs.
func runInstalled(ctx context.Context, t *testing.T, s *stack.Stack, namespace string) *installedOperator {
	t.Helper()
	g := NewWithT(t)
	deployments := &appsv1.DeploymentList{}
	g.Expect(s.Workload.List(ctx, deployments, client.InNamespace(namespace))).To(Succeed())
	g.Expect(deployments.Items).To(HaveLen(1))
	// As the variable KARPENTER_REPLICAS says: this process is its only one.
	g.Expect(deployments.Items[0].Spec.Replicas).To(HaveValue(BeZero()))
	pod := &deployments.Items[0].Spec.Template.Spec
	manager := &pod.Containers[0]
	g.Expect(manager.Name).To(Equal("manager"))

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.ServiceAccountName}}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(writeKubeconfig(ctx, s, account, kubeconfig)).To(Succeed())

	ports, err := freePorts(2)
	g.Expect(err).NotTo(HaveOccurred())
	// What a Pod has of its own: its credentials, and an address of its own to listen on.
	arguments := append(slices.Clone(manager.Args),
		"--bind-address=127.0.0.1", fmt.Sprintf("--metrics-port=%d", ports[0]), fmt.Sprintf("--health-probe-port=%d", ports[1]))
	environment := []string{"KUBECONFIG=" + kubeconfig}
	for _, variable := range manager.Env {
		value, err := valueOf(&variable, namespace, &manager.Resources)
		g.Expect(err).NotTo(HaveOccurred())
		environment = append(environment, variable.Name+"="+value)
	}

	log, err := os.OpenFile(filepath.Join(s.LogDir(), "installed-operator.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	g.Expect(err).NotTo(HaveOccurred())
	defer log.Close() //nolint:errcheck // The process has it open.
	o := &installedOperator{command: exec.Command(filepath.Join(binaries(t), "karpenter-capi"), arguments...), ended: make(chan error, 1)}
	o.command.Env, o.command.Stdout, o.command.Stderr = environment, log, log
	g.Expect(o.command.Start()).To(Succeed())
	go func() { o.ended <- o.command.Wait() }()
	// With it, the stack's guard finds the process, should this one be killed.
	pidFile := filepath.Join(s.Dir(), "pids", "installed-operator.pid")
	g.Expect(os.WriteFile(pidFile, []byte(strconv.Itoa(o.command.Process.Pid)), 0o600)).To(Succeed())
	t.Cleanup(func() {
		if t.Failed() {
			showEnd(t, log.Name())
		}
		o.stop(t)
	})

	g.Expect(s.Await(ctx, time.Minute, "the operator to be ready", func(ctx context.Context) (bool, string, error) {
		select {
		case err := <-o.ended:
			o.ended <- err
			return false, "", errors.Join(fmt.Errorf("it has ended; see %s", log.Name()), err)
		default:
			return probe(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[1]))
		}
	})).To(Succeed())
	return o
}

// stop ends the process in order, as a kubelet does.
func (o *installedOperator) stop(t *testing.T) {
	t.Helper()
	_ = o.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-o.ended:
		o.ended <- err
	case <-time.After(30 * time.Second):
		_ = o.command.Process.Kill()
		o.ended <- <-o.ended
		t.Error("the operator did not end within 30 seconds")
	}
}

// valueOf returns what a kubelet makes of a variable.
func valueOf(variable *corev1.EnvVar, namespace string, resources *corev1.ResourceRequirements) (string, error) {
	source := variable.ValueFrom
	switch {
	case source == nil:
		return variable.Value, nil
	case source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.namespace":
		return namespace, nil
	case source.ResourceFieldRef != nil:
		quantities := map[string]int64{
			"requests.cpu":  resources.Requests.Cpu().MilliValue(),
			"limits.memory": resources.Limits.Memory().MilliValue(),
		}
		quantity, known := quantities[source.ResourceFieldRef.Resource]
		divisor := source.ResourceFieldRef.Divisor.MilliValue()
		if divisor == 0 {
			divisor = 1000
		}
		if known {
			return strconv.FormatInt((quantity+divisor-1)/divisor, 10), nil
		}
		return "", fmt.Errorf("variable %s: this test knows only %v", variable.Name, slices.Collect(maps.Keys(quantities)))
	default:
		return "", fmt.Errorf("variable %s: this test does not know its source", variable.Name)
	}
}

// writeKubeconfig writes a kubeconfig with which one is the ServiceAccount, and nobody else.
func writeKubeconfig(ctx context.Context, s *stack.Stack, account *corev1.ServiceAccount, file string) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	if err := s.Workload.SubResource("token").Create(ctx, account, request); err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(s.Kubeconfig())
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: request.Status.Token}
	}
	return clientcmd.WriteToFile(*config, file)
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

// freePorts returns ports on 127.0.0.1 that nothing listens on.
func freePorts(count int) (ports []int, err error) {
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// They stay open until all are found.
		defer listener.Close() //nolint:errcheck // It only held the port.
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
