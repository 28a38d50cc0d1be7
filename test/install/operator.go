// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// Operator replaces a Pod of the installed Deployment.
type Operator struct {
	t       *testing.T
	process *process
	mounts  []mount
}

// Installed returns the only Deployment of an operator.
func Installed(ctx context.Context, g gomega.Gomega, s *stack.Stack) *appsv1.Deployment {
	deployments := &appsv1.DeploymentList{}
	g.Expect(home(s).List(ctx, deployments)).To(gomega.Succeed())
	operators := slices.DeleteFunc(deployments.Items, func(d appsv1.Deployment) bool {
		return !strings.Contains(d.Spec.Template.Spec.Containers[0].Image, Binary)
	})
	g.Expect(operators).To(gomega.HaveLen(1))
	return &operators[0]
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
	installed := Installed(ctx, g, s)
	pod := &installed.Spec.Template.Spec
	container := &pod.Containers[0]
	dir := t.TempDir()
	o := &Operator{t: t}
	local := func(path string) string {
		if path == "" {
			return ""
		}
		m := mountOf(g, installed, path, dir)
		o.mounts = append(o.mounts, m)
		m.write(ctx, g, s)
		return m.file
	}

	ports, err := stack.FreePorts(2)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	environment := []string{"KUBECONFIG=" + identity(ctx, g, s, installed, dir)}
	var variables []string // as a kubelet replaces them in arguments
	for i := range container.Env {
		variable := &container.Env[i]
		value, err := valueOf(variable, installed)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		if variable.Name == "CLUSTER_API_KUBECONFIG" || variable.Name == "WORKLOAD_KUBECONFIG" {
			value = local(value)
		}
		environment = append(environment, variable.Name+"="+value)
		variables = append(variables, "$("+variable.Name+")", value)
	}
	var arguments []string
	for _, argument := range container.Args {
		argument = strings.NewReplacer(variables...).Replace(argument)
		if path, is := strings.CutPrefix(argument, "--workload-kubeconfig="); is {
			argument = "--workload-kubeconfig=" + local(path)
		}
		arguments = append(arguments, argument)
	}
	// A Pod has its own addresses to listen on.
	arguments = append(arguments,
		"--bind-address=127.0.0.1", fmt.Sprintf("--metrics-port=%d", ports[0]), fmt.Sprintf("--health-probe-port=%d", ports[1]))

	o.process = &process{
		path: binary, arguments: arguments, environment: environment,
		log: filepath.Join(s.LogDir(), "installed-operator.log"), pid: filepath.Join(s.Dir(), "pids", "installed-operator.pid"),
	}
	g.Expect(o.process.start()).To(gomega.Succeed())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of %s:\n%s", o.process.log, (&stack.Component{LogFile: o.process.log}).LogTail(40))
		}
		o.Stop()
	})

	g.Expect(s.Await(ctx, time.Minute, "the operator to be ready", func(ctx context.Context) (bool, string, error) {
		select {
		case <-o.process.ended:
			return false, "", o.process.failure
		default:
			return probe(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[1]))
		}
	})).To(gomega.Succeed())
	return o
}

// Stop ends the process gracefully, as a kubelet does. The test fails if it had ended before.
func (o *Operator) Stop() {
	if err := o.process.Stop(); err != nil {
		o.t.Errorf("the operator: %v", err)
	}
}

// identity writes a kubeconfig with the identity of the ServiceAccount, and returns its path.
func identity(ctx context.Context, g gomega.Gomega, s *stack.Stack, of *appsv1.Deployment, dir string) string {
	kubeconfig := s.Kubeconfig()
	if s.Placement() == stack.InManagement {
		kubeconfig = s.ManagementKubeconfig()
	}
	account := client.ObjectKey{Namespace: of.Namespace, Name: of.Spec.Template.Spec.ServiceAccountName}
	file := filepath.Join(dir, "kubeconfig")
	g.Expect(os.WriteFile(file, KubeconfigOf(ctx, g, home(s), account, kubeconfig), 0o600)).To(gomega.Succeed())
	return file
}

// KubeconfigOf returns a kubeconfig for a cluster with the identity of a ServiceAccount, from another one for it.
func KubeconfigOf(ctx context.Context, g gomega.Gomega, cluster client.Client, key client.ObjectKey, from string) []byte {
	account, request := &corev1.ServiceAccount{}, &authenticationv1.TokenRequest{}
	account.Namespace, account.Name = key.Namespace, key.Name
	g.Expect(cluster.SubResource("token").Create(ctx, account, request)).To(gomega.Succeed())
	config, err := clientcmd.LoadFromFile(from)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: request.Status.Token}
	}
	content, err := clientcmd.Write(*config)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	return content
}

// valueOf returns the value of a variable as a kubelet resolves it.
func valueOf(variable *corev1.EnvVar, of *appsv1.Deployment) (string, error) {
	source, container := variable.ValueFrom, &of.Spec.Template.Spec.Containers[0]
	switch {
	case source == nil:
		return variable.Value, nil
	case source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.namespace":
		return of.Namespace, nil
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
