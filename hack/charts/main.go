// SPDX-License-Identifier: Apache-2.0

// Command charts writes the parts of the Helm charts whose source is elsewhere: the rules of the roles come from
// config/rbac, and the CustomResourceDefinitions from config/crd and from Karpenter's Go module. It runs in the root of the
// repository. Its argument is the kubectl whose kustomize builds config.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	rulesDir = "charts/karpenter-capi/files/rules"
	crdsDir  = "charts/karpenter-capi-crd/files"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: charts KUBECTL")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

func run(kubectl string) error {
	rules, err := ruleFiles("config/rbac")
	if err != nil {
		return err
	}
	ours, err := output(kubectl, "kustomize", "config/crd")
	if err != nil {
		return err
	}
	crds, err := ourCRDs(ours)
	if err != nil {
		return err
	}
	if err := addKarpenterCRDs(crds); err != nil {
		return err
	}
	if err := replace(rulesDir, rules); err != nil {
		return err
	}
	return replace(crdsDir, crds)
}

// output returns the output of a command.
func output(name string, args ...string) ([]byte, error) {
	command := exec.Command(name, args...)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return printed, nil
}

// replace replaces the content of a folder with files, by their paths.
func replace(dir string, files map[string]string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// header returns the first line of a generated file.
func header(source string) string {
	return fmt.Sprintf("# Written by 'make charts' from %s; not to be changed here.\n", source)
}
