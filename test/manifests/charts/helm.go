// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// The charts.
const (
	Operator = "karpenter-capi"
	CRDs     = "karpenter-capi-crd"
)

// Values are the values of a chart, as in a values file.
type Values map[string]any

// Helm is the helm that the Makefile builds.
type Helm struct {
	// Dir is where it keeps what it would otherwise keep in the user's home directory.
	Dir string

	// Kubeconfig is for the cluster that it accesses; without one it accesses none.
	Kubeconfig string
}

// Root returns the root of this repository, above the folder that a test runs in.
func Root() string {
	folder, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
	}
	panic("the tests run outside of this repository: no folder above has a go.mod")
}

// Chart returns the folder of a chart.
func Chart(name string) string {
	return filepath.Join(Root(), "charts", name)
}

// Binary returns the path of helm, or an error that describes how to get it.
func Binary() (string, error) { return Tool("helm") }

// Tool returns the path of a program that the Makefile builds, or an error that describes how to get it.
func Tool(name string) (string, error) {
	path := filepath.Join(Root(), "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("bin/%s is not built (%w): run 'make bin/%s', or the tests of the charts with 'make test-charts'", name, err, name)
	}
	return path, nil
}

// Run runs helm with values, if there are any, and returns what it prints. The error contains helm's message.
func (h *Helm) Run(ctx context.Context, values Values, args ...string) (string, error) {
	binary, err := Binary()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, binary, args...)
	if values != nil {
		input, err := json.Marshal(values)
		if err != nil {
			return "", err
		}
		command.Args = append(command.Args, "--values=-")
		command.Stdin = bytes.NewReader(input)
	}
	command.Env = append(os.Environ(), "KUBECONFIG="+h.Kubeconfig)
	for _, kind := range []string{"CACHE", "CONFIG", "DATA"} {
		command.Env = append(command.Env, fmt.Sprintf("HELM_%s_HOME=%s", kind, filepath.Join(h.Dir, strings.ToLower(kind))))
	}
	stdout, stderr := &bytes.Buffer{}, &bytes.Buffer{}
	command.Stdout, command.Stderr = stdout, stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Template returns the objects that a chart renders.
func (h *Helm) Template(ctx context.Context, release, namespace, chart string, values Values, args ...string) ([]*unstructured.Unstructured, error) {
	manifests, err := h.Run(ctx, values, append([]string{"template", release, Chart(chart), "--namespace=" + namespace}, args...)...)
	if err != nil {
		return nil, err
	}
	return Decode(manifests)
}

// Decode returns the objects of YAML documents.
func Decode(manifests string) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
