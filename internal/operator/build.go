// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	core "sigs.k8s.io/karpenter/pkg/operator"
)

// commit is set by the linker, because images are built without git, so that the go
// command does not know the commit.
var commit string

// Build has the versions from which the binary was built.
type Build struct {
	Version    string
	Commit     string
	GoVersion  string
	Karpenter  string
	ClusterAPI string
}

// unknown is the value of an unknown version, such as of the modules of a test.
const unknown = "unknown"

// ReadBuild returns the versions of this binary.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return BuildOf(info)
}

// BuildOf returns the versions in the build information of a binary.
func BuildOf(info *debug.BuildInfo) Build {
	build := Build{
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
func (b Build) String() string {
	return fmt.Sprintf("%s %s\ncommit %s\n%s\nKarpenter %s\nCluster API %s",
		Name, b.Version, b.Commit, b.GoVersion, b.Karpenter, b.ClusterAPI)
}

// The metric has its own name, because Karpenter's karpenter_build_info has the version of
// the binary, but not that of Karpenter.
func init() {
	build := ReadBuild()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "karpenter_capi_build_info",
		Help: "Always 1. The labels are the versions from which the operator was built.",
		ConstLabels: prometheus.Labels{
			"version":             build.Version,
			"commit":              build.Commit,
			"goversion":           build.GoVersion,
			"goarch":              runtime.GOARCH,
			"karpenter_version":   build.Karpenter,
			"cluster_api_version": build.ClusterAPI,
		},
	})
	info.Set(1)
	metrics.Registry.MustRegister(info)
}
