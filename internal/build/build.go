// SPDX-License-Identifier: Apache-2.0

// Package build has the name of the operator, and the versions that it was built from.
package build

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	core "sigs.k8s.io/karpenter/pkg/operator"

	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

// Name is the name of this operator, as user agent and in logs.
const Name = "karpenter-capi"

// commit is set by the linker, because images are built without git, so that the go
// command does not know the commit.
var commit string

// Info has the versions from which the binary was built.
type Info struct {
	Version    string
	Commit     string
	GoVersion  string
	Karpenter  string
	ClusterAPI string
}

// unknown is the value of an unknown version, such as of the modules of a test.
const unknown = "unknown"

// Read returns the versions of this binary.
func Read() Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return Of(info)
}

// Of returns the versions in the build information of a binary.
func Of(info *debug.BuildInfo) Info {
	build := Info{
		Version: core.Version, Commit: cmp.Or(commit, unknown), GoVersion: runtime.Version(), Karpenter: unknown, ClusterAPI: unknown,
	}
	for _, module := range info.Deps {
		switch module.Path {
		case "sigs.k8s.io/karpenter":
			build.Karpenter = module.Version
		case "sigs.k8s.io/cluster-api":
			build.ClusterAPI = module.Version
		}
	}
	return build
}

// String returns the output of --version.
func (b Info) String() string {
	return fmt.Sprintf("%s %s\ncommit %s\n%s\nKarpenter %s\nCluster API %s",
		Name, b.Version, b.Commit, b.GoVersion, b.Karpenter, b.ClusterAPI)
}

// The metric has its own name, because Karpenter's karpenter_build_info has the version of
// the binary, but not that of Karpenter.
func init() {
	build := Read()
	metrics.BuildInfo.WithLabelValues(build.Version, build.Commit, build.GoVersion, runtime.GOARCH, build.Karpenter, build.ClusterAPI).Set(1)
}
