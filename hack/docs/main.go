// SPDX-License-Identifier: Apache-2.0

// Command docs writes the reference of a CustomResourceDefinition in Markdown to its
// standard output: every field with its type, description and checks. controller-gen
// generates the CustomResourceDefinition from the types in api/v1alpha1 and their comments.
// Unlike a program that reads the Go types, this one cannot omit a field or a rule that the
// API server knows.
//
// Given a folder, it writes the reference of the conditions and their reasons, from the comments
// of the constants there (see entry). A test compares them with what the operator sets. With the word reasons before
// the folder, it writes what to do about each reason as Go code, for the command why of the kubectl plugin.
//
// Given internal/metrics, it writes the reference of metrics, from the definitions there.
package main

import (
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 2 && arguments[0] == "reasons" {
		code, err := reasonsCode(arguments[1])
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(code)
		return err
	}
	if len(arguments) != 1 {
		return fmt.Errorf("usage: docs CRD.yaml|FOLDER >FILE.md, or docs reasons FOLDER >FILE.go, in the repository")
	}
	if arguments[0] == "internal/metrics" {
		text, err := metricsPage()
		if err != nil {
			return err
		}
		_, err = fmt.Print(text)
		return err
	}
	if info, err := os.Stat(arguments[0]); err == nil && info.IsDir() {
		text, err := conditionsPage(".", arguments[0])
		if err != nil {
			return err
		}
		_, err = fmt.Print(text)
		return err
	}
	content, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, crd); err != nil {
		return fmt.Errorf("%s: %w", arguments[0], err)
	}
	_, err = fmt.Print(page(crd))
	return err
}
