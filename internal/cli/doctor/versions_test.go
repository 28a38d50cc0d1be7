// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// Versions that the operator is not tested with, and those that differ within an installation, are warnings. What is no version
// shows nothing.
func TestOfVersions(t *testing.T) {
	newest, range1, range2 := build.Kubernetes.Newest+".1", build.Kubernetes.String(), build.ClusterAPI.String()
	capi := func(image string) map[string][]string { return map[string][]string{view.ClusterAPI: {image}} }
	for name, tc := range map[string]struct {
		versions view.Versions
		plugin   string
		want     []string
	}{
		"all fit": {
			versions: view.Versions{Workload: newest, Management: build.Kubernetes.Oldest + ".0-eks-1", Operator: []string{"example.com:5000/karpenter-capi:v0.1.0@sha256:abc"}, Providers: capi("example.com/capi:" + build.ClusterAPI.Newest + ".2")},
			plugin:   "v0.1.0",
		},
		"nothing is known":           {},
		"an old workload cluster":    {versions: view.Versions{Workload: "v1.20.1", Management: newest}, want: []string{"workload cluster: its Kubernetes is v1.20.1, and this version is tested with " + range1}},
		"a new management cluster":   {versions: view.Versions{Workload: newest, Management: "v1.99.0"}, want: []string{"management cluster: its Kubernetes is v1.99.0, and this version is tested with " + range1}},
		"both are old":               {versions: view.Versions{Workload: "v1.20.1", Management: "v1.20.1"}, want: []string{"workload cluster: its Kubernetes is v1.20.1, and this version is tested with " + range1}},
		"an old Cluster API":         {versions: view.Versions{Providers: capi("capi:v1.10.0")}, want: []string{"Cluster API: it has the version v1.10.0, and this version is tested with " + range2}},
		"an image without version":   {versions: view.Versions{Providers: capi("example.com:5000/capi"), Operator: []string{"karpenter-capi:20260101"}}, plugin: "v0.1.0"},
		"another plugin":             {versions: view.Versions{Operator: []string{"karpenter-capi:v0.2.0"}}, plugin: "v0.1.0", want: []string{"Pod: the operator's image is karpenter-capi:v0.2.0, and this plugin has the version v0.1.0"}},
		"a plugin without version":   {versions: view.Versions{Operator: []string{"karpenter-capi:v0.2.0"}}, plugin: "unspecified"},
		"an upgrade of the operator": {versions: view.Versions{Operator: []string{"o:v0.1.0", "o:v0.1.1"}}, want: []string{"Pod: the operator's Pods have different images: o:v0.1.0, o:v0.1.1"}},
	} {
		got := lo.Map(ofVersions(tc.versions, tc.plugin), func(f Finding, _ int) string { return f.Object + ": " + f.Message })
		if diff := cmp.Diff(append([]string{}, tc.want...), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
