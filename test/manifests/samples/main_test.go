// SPDX-License-Identifier: Apache-2.0

// Package samples tests that config/samples and the examples in the guides are correct: a real API
// server, with the real CustomResourceDefinitions of Cluster API, of its providers and of
// Karpenter, accepts them and everything that is generated from them, and the generated objects
// request the machines that the samples offer. The kinds in unchecked are the exceptions.
package samples

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var (
	// apiServer rejects unknown fields.
	apiServer client.Client
	// kubeconfig is the file with which command lines reach it as an administrator.
	kubeconfig string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	env, err := start()
	if env != nil { // also if it did not start completely
		defer func() {
			if err := env.Stop(); err != nil {
				fmt.Fprintf(os.Stderr, "stopping the API server: %v\n", err)
			}
		}()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting the API server (make test sets KUBEBUILDER_ASSETS and makes bin/crds): %v\n", err)
		return 1
	}
	return m.Run()
}

// start starts an API server with all CustomResourceDefinitions.
func start() (*envtest.Environment, error) {
	provided := filepath.Join("..", "..", "..", "bin", "crds", "*", "*.yaml")
	files, err := filepath.Glob(provided)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no files %s", provided)
	}
	options := envtest.CRDInstallOptions{
		Paths:              append(files, filepath.Join("..", "..", "..", "config", "crd", "bases")),
		ErrorIfPathMissing: true,
	}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return nil, err
	}
	options.CRDs = append(options.CRDs, standIns()...)
	// No provider runs that could convert objects.
	for _, crd := range options.CRDs {
		crd.Spec.Conversion = nil
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	env := &envtest.Environment{Scheme: scheme, CRDs: append(options.CRDs, karpenterapis.CRDs...)}
	config, err := env.Start()
	if err != nil {
		return env, err
	}
	config.QPS = -1 // no limit: all objects of all offerings are created
	lenient, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return env, err
	}
	apiServer = client.WithFieldValidation(lenient, metav1.FieldValidationStrict)
	kubeconfig, err = writeKubeconfig(env)
	if err != nil {
		return env, err
	}
	// The namespace of the operator.
	return env, apiServer.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karpenter-capi-system"}})
}

// writeKubeconfig writes the kubeconfig of an administrator. The folder is that of the API server's
// certificates, which is deleted when it stops.
func writeKubeconfig(env *envtest.Environment) (string, error) {
	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return "", err
	}
	content, err := user.KubeConfig()
	if err != nil {
		return "", err
	}
	path := filepath.Join(env.ControlPlane.APIServer.CertDir, "kubeconfig")
	return path, os.WriteFile(path, content, 0o600)
}
