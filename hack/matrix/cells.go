// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// The Go modules whose versions are combined.
const (
	clusterAPI = "sigs.k8s.io/cluster-api"
	kubernetes = "k8s.io/kubernetes"
)

// newest is the newest minor version of Kubernetes that minor versions of Cluster API support as the management cluster. Others
// support all that are tested (cluster-api: docs/book/src/reference/versions.md). The newest patch of v1.12 that the Go proxy
// serves is v1.12.2, which does not support v1.36.
var newest = map[string]string{"v1.11": "v1.34", "v1.12": "v1.35"}

// Cell is a version of Cluster API with one of Kubernetes.
type Cell struct {
	ClusterAPI string `json:"clusterAPI"`
	Kubernetes string `json:"kubernetes"`
}

// cells returns all cells, the oldest versions first. The versions are those of the Go modules that a repository builds with,
// and those of hack/tools/versions.txt.
func cells(repository string) ([]Cell, error) {
	listed, err := os.ReadFile(filepath.Join(repository, "hack", "tools", "versions.txt"))
	if err != nil {
		return nil, err
	}
	versions := map[string][]string{}
	for line := range strings.Lines(string(listed)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] != "#" {
			versions[fields[0]] = append(versions[fields[0]], fields[1])
		}
	}
	for module, file := range map[string]string{clusterAPI: "go.mod", kubernetes: filepath.Join("hack", "tools", "kubernetes", "go.mod")} {
		version, err := required(filepath.Join(repository, file), module)
		if err != nil {
			return nil, err
		}
		versions[module] = append(versions[module], version)
		slices.SortFunc(versions[module], compare)
	}
	var all []Cell
	for _, api := range versions[clusterAPI] {
		for _, kube := range versions[kubernetes] {
			if last := newest[minor(api)]; last == "" || compare(minor(kube)+".0", last+".0") <= 0 {
				all = append(all, Cell{api, kube})
			}
		}
	}
	return all, nil
}

// required returns the version of a module in a go.mod file.
func required(file, module string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(content)
	if found == nil {
		return "", fmt.Errorf("%s does not require %s", file, module)
	}
	return string(found[1]), nil
}

// minor returns the minor version of a version, such as v1.13.
func minor(version string) string { return version[:strings.LastIndex(version, ".")] }

// compare compares versions.
func compare(a, b string) int {
	first, err := semver.ParseTolerant(a)
	second, otherErr := semver.ParseTolerant(b)
	if err != nil || otherErr != nil {
		return cmp.Compare(a, b)
	}
	return first.Compare(second)
}
