// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// modules are the folders of the Go modules that contain the manifests.
type modules struct {
	root string
	// clusterAPI is another folder for another version of Cluster API, see Options.ClusterAPI.
	clusterAPI string
	// clusterAPIVersion is the version of Cluster API in go.mod.
	clusterAPIVersion string
	karpenter         string
}

// The Go modules by their paths.
const (
	rootModule       = "github.com/karpenter-capi/karpenter-capi"
	clusterAPIModule = "sigs.k8s.io/cluster-api"
	karpenterModule  = "sigs.k8s.io/karpenter"
)

// findModules runs the go command, so the manifests have the versions in go.mod.
func findModules(ctx context.Context) (*modules, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}} {{.Version}}", rootModule, clusterAPIModule, karpenterModule)
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=auto")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go list, run from within this repository: %s", strings.TrimSpace(string(exit.Stderr)))
	} else if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	dirs, versions := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		// The main module has no version.
		at := strings.LastIndex(rest, " ")
		dirs[path], versions[path] = rest[:at], rest[at+1:]
	}
	for _, path := range []string{rootModule, clusterAPIModule, karpenterModule} {
		if dirs[path] == "" {
			return nil, fmt.Errorf("the Go module %s is not on this machine; download it with: go mod download %s", path, path)
		}
	}
	return &modules{
		root: dirs[rootModule], clusterAPI: dirs[clusterAPIModule], clusterAPIVersion: versions[clusterAPIModule], karpenter: dirs[karpenterModule],
	}, nil
}
