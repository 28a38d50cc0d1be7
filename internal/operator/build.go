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

// commit is set by the linker: an image is built where git is not, so the go
// command cannot know it there.
var commit string

// Build tells what the binary was built from.
type Build struct {
	Version    string
	Commit     string
	GoVersion  string
	Karpenter  string
	ClusterAPI string
}

// unknown is what cannot be known, as the modules of a test.
const unknown = "unknown"

// ReadBuild returns what this binary was built from.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return BuildOf(info)
}

// BuildOf returns what the go command has written into a binary of this version.
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

// String is what --version prints.
func (b Build) String() string {
	return fmt.Sprintf("%s %s\ncommit %s\n%s\nKarpenter %s\nCluster API %s",
		Name, b.Version, b.Commit, b.GoVersion, b.Karpenter, b.ClusterAPI)
}

// The metric has a name of its own: Karpenter's karpenter_build_info tells the
// version of the binary, too, but not that of Karpenter.
func init() {
	build := ReadBuild()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "karpenter_capi_build_info",
		Help: "Always 1; the labels tell what the operator was built from.",
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
