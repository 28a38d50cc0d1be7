// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"gonum.org/v1/plot/plotter"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

func TestRecord(t *testing.T) {
	server := answering(t, map[string]string{
		`query_range created{job="operator"}`: `{"resultType": "matrix", "result": [
			{"metric": {"nodepool": "b"}, "values": [[1800000002, "1"], [1800000004, "NaN"], [1800000006, "+Inf"], [1800000008, "3"]]},
			{"metric": {"nodepool": "a"}, "values": [[1800000002, "0"]]}, {"metric": {"nodepool": "c"}, "values": [[1800000002, "NaN"]]}]}`,
		"query_range removed": `{"resultType": "matrix", "result": [{"metric": {}, "values": [[1800000010, "5"]]}]}`,
		"query_range other":   `{"resultType": "matrix", "result": []}`,
		"query_range broken":  `{"resultType": "scalar", "result": [1800000000, "1"]}`,
	})
	panels := []charts.Panel{
		{Title: "NodeClaims", Unit: "short", Expr: `created{job="$job"}`, Legend: "{{nodepool}} created"},
		{Title: "NodeClaims", Unit: "short", Expr: "removed", Legend: "removed"},
		{Title: "Others", Unit: "s", Expr: "other"},
	}
	start := time.Unix(1800000000, 0)
	got, err := server.Record(t.Context(), panels, Target{Job: "operator"}, start)
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{Title: "NodeClaims", Unit: "short", Lines: []Line{
			{Name: "a created", Points: plotter.XYs{{X: 2, Y: 0}}},
			{Name: "b created", Points: plotter.XYs{{X: 2, Y: 1}, {X: 8, Y: 3}}},
			{Name: "removed", Points: plotter.XYs{{X: 10, Y: 5}}},
		}},
		{Title: "Others", Unit: "s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, query := range []string{"broken", "unknown", "a{$b}"} {
		if _, err := server.Record(t.Context(), []charts.Panel{{Expr: query}}, Target{}, start); err == nil {
			t.Errorf("%s: got no error", query)
		}
	}
}

func TestNameOf(t *testing.T) {
	labels := model.Metric{"template": "general", "reason": "QuotaExceeded", "empty": ""}
	for legend, want := range map[string]string{
		"":                            "",
		"Pods":                        "Pods",
		"{{template}} {{ reason }}":   "general QuotaExceeded",
		"{{template}}/{{empty}}":      "general/",
		"{{template}} and {{absent}}": "general and ",
	} {
		if got := nameOf(legend, labels); got != want {
			t.Errorf("%s: got %q, want %q", legend, got, want)
		}
	}
}

func TestDraw(t *testing.T) {
	svg, err := Draw([]Record{
		{Title: "Age of the caches", Unit: "s", Lines: []Line{{Name: "management", Points: plotter.XYs{{X: 1, Y: 2}, {X: 3, Y: 4}}}}},
		{Title: "Price per hour"},
		{Title: "Machines by state", Lines: []Line{{Name: "linked", Points: plotter.XYs{{X: 1, Y: 1}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"<svg", "Age of the caches", "management", "seconds", "Price per hour", "Machines by state", "sans-serif"} {
		if !strings.Contains(string(svg), text) {
			t.Errorf("the picture lacks %q", text)
		}
	}
	if _, err := Draw(nil); err == nil {
		t.Error("got no error without anything to draw")
	}
}
