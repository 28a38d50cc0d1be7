// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
)

func TestThePageOfMetricsIsGenerated(t *testing.T) {
	want, err := metricsPage()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(repository, "docs/reference/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/reference/metrics.md differs from internal/metrics, or from the metrics of Karpenter: run `make manifests`")
	}
}

func TestMetricsAreDescribed(t *testing.T) {
	for _, d := range metrics.All() {
		if !strings.HasPrefix(d.Name, "karpenter_capi_") || !strings.HasSuffix(d.Help, ".") || !strings.HasSuffix(d.Question, "?") {
			t.Errorf("%s: the name must begin with karpenter_capi_, the help must be sentences, and the question must be one", d.Name)
		}
		if (d.Type == metrics.Counter) != strings.HasSuffix(d.Name, "_total") {
			t.Errorf("%s: the names of counters, and no others, end in _total", d.Name)
		}
		for _, label := range d.Labels {
			if label.Values == "" {
				t.Errorf("%s: the values of the label %s are not described", d.Name, label.Name)
			}
		}
	}
}

// A metric that is created elsewhere would be missing on the page.
func TestAllMetricsAreDefinedInOnePackage(t *testing.T) {
	creates := regexp.MustCompile(`prometheus\.New(Counter|Gauge|Histogram|Summary)`)
	err := filepath.WalkDir(filepath.Join(repository, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/metrics/") {
			return err
		}
		content, err := os.ReadFile(path)
		if creates.Match(content) {
			t.Errorf("%s creates a metric: define it in internal/metrics", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
