// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// The folders of the CRDs. A value of the chart can omit each, because a cluster can already have the CRDs of others.
const (
	ourFolder       = "karpenter-capi"
	karpenterFolder = "karpenter"
	// Karpenter shares this kind with cluster-autoscaler.
	bufferFolder = "capacity-buffer"
	bufferGroup  = "autoscaling.x-k8s.io"
)

const karpenterModule = "sigs.k8s.io/karpenter"

// crd has the fields of a CRD that determine the name of its file.
type crd struct {
	Kind string
	Spec struct {
		Group string
		Names struct{ Plural string }
	}
}

// ourCRDs returns the files of the CRDs that config/crd builds.
func ourCRDs(objects []byte) (map[string]string, error) {
	content := map[string]string{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(objects)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return content, nil
		}
		if err != nil {
			return nil, err
		}
		object := &crd{}
		if err := yaml.Unmarshal(text, object); err != nil {
			return nil, err
		}
		if object.Kind != "CustomResourceDefinition" {
			return nil, fmt.Errorf("config/crd has a %s, but the chart accepts only CustomResourceDefinitions", object.Kind)
		}
		file := path.Join(ourFolder, object.Spec.Group+"_"+object.Spec.Names.Plural+".yaml")
		content[file] = header("config/crd") + document(text)
	}
}

// addKarpenterCRDs adds the files of Karpenter's own CRDs, in the version of go.mod.
func addKarpenterCRDs(content map[string]string) error {
	printed, err := output("go", "list", "-m", "-json", karpenterModule)
	if err != nil {
		return err
	}
	module := struct{ Dir, Version string }{}
	if err := json.Unmarshal(printed, &module); err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(module.Dir, "pkg/apis/crds/*.yaml"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("no CRDs in %s: %w", karpenterModule, err)
	}
	for _, from := range paths {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		object := &crd{}
		if err := yaml.Unmarshal(text, object); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		folder := karpenterFolder
		if object.Spec.Group == bufferGroup {
			folder = bufferFolder
		}
		source := fmt.Sprintf("%s %s (Apache-2.0, The Kubernetes Authors)", karpenterModule, module.Version)
		content[path.Join(folder, filepath.Base(from))] = header(source) + document(text)
	}
	return nil
}

// document returns a YAML document without its separator line.
func document(text []byte) string {
	return strings.TrimPrefix(string(bytes.TrimLeft(text, "\n")), "---\n")
}
