// SPDX-License-Identifier: Apache-2.0

package build

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	core "sigs.k8s.io/karpenter/pkg/operator"
)

func TestOf(t *testing.T) {
	build := Of(&debug.BuildInfo{Deps: []*debug.Module{
		{Path: "sigs.k8s.io/cluster-api", Version: "v1.2.3"},
		{Path: "sigs.k8s.io/karpenter", Version: "v4.5.6"},
	}})
	want := Info{Version: core.Version, Commit: "unknown", GoVersion: runtime.Version(), Karpenter: "v4.5.6", ClusterAPI: "v1.2.3"}
	if diff := cmp.Diff(want, build); diff != "" {
		t.Error(diff)
	}
	wantText := strings.Join([]string{
		"karpenter-capi " + core.Version, "commit unknown", runtime.Version(), "Karpenter v4.5.6", "Cluster API v1.2.3",
	}, "\n")
	if diff := cmp.Diff(wantText, build.String()); diff != "" {
		t.Error(diff)
	}
}

func TestBuildInfoMetric(t *testing.T) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "karpenter_capi_build_info" {
			continue
		}
		labels := map[string]string{}
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		build := Read()
		for name, want := range map[string]string{
			"version": build.Version, "commit": build.Commit, "goversion": build.GoVersion,
			"karpenter_version": build.Karpenter, "cluster_api_version": build.ClusterAPI,
		} {
			if labels[name] != want {
				t.Errorf("label %s is %q, want %q", name, labels[name], want)
			}
		}
		if value := family.GetMetric()[0].GetGauge().GetValue(); len(family.GetMetric()) != 1 || value != 1 {
			t.Errorf("got %d metrics with the value %v, want one with 1", len(family.GetMetric()), value)
		}
		return
	}
	t.Error("karpenter_capi_build_info does not exist")
}
