// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

func TestQuestionsOf(t *testing.T) {
	chart := &charts.Monitoring{
		Alerts: []charts.Alert{{Alert: "Expires", Expr: `a{job="operator"} < a{job="operator"} offset 1d`}},
		Panels: []charts.Panel{{Expr: `sum by (b) (rate(c{job="$job", d!="e"}[5m]))`}},
	}
	got, err := QuestionsOf(t.Context(), chart, Target{Job: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	want := &Questions{
		Panels: []string{`sum by (b) (rate(c{job="operator", d!="e"}[5m]))`}, Alerts: []string{"Expires"},
		Selectors: []string{`a{job="operator"}`, `c{d!="e",job="operator"}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The chart has no variable that this package does not know.
func TestQuestionsOfTheChart(t *testing.T) {
	helm := &charts.Helm{Dir: t.TempDir()}
	rendered, err := helm.Template(t.Context(), charts.Operator, charts.MatrixNamespace, charts.Operator, charts.MonitoringValues())
	if err != nil {
		t.Fatal(err)
	}
	chart, err := charts.MonitoringOf(rendered)
	if err != nil {
		t.Fatal(err)
	}
	got, err := QuestionsOf(t.Context(), chart, Target{Namespace: charts.MatrixNamespace, Job: charts.Operator})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Panels) == 0 || len(got.Alerts) == 0 || len(got.Selectors) == 0 {
		t.Errorf("got %+v", got)
	}
	// The alerts select the series that have the labels of the target.
	if !slices.ContainsFunc(got.Selectors, func(s string) bool {
		return strings.HasPrefix(s, "up{") && strings.Contains(s, `job="`+charts.Operator+`"`) && strings.Contains(s, `namespace="`+charts.MatrixNamespace+`"`)
	}) {
		t.Errorf("no selector has the labels of the target: %v", got.Selectors)
	}
}

func TestMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, answered []string
		explained       map[string]string
		want            []string
	}{
		"all are answered":                 {asked: []string{"a", "b"}, answered: []string{"b", "a", "c"}},
		"one has no answer":                {asked: []string{"c", "a", "b"}, answered: []string{"b"}, want: []string{"a", "c"}},
		"its absence is explained":         {asked: []string{"a", "b"}, answered: []string{"b"}, explained: map[string]string{"a": "it takes days"}},
		"it is explained, and answered":    {asked: []string{"a"}, answered: []string{"a"}, explained: map[string]string{"a": "it takes days"}},
		"what is explained does not exist": {asked: []string{"a"}, answered: []string{"a"}, explained: map[string]string{"b": "it takes days"}, want: []string{"b is explained, and nothing asks for it"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Missing(tc.asked, sets.New(tc.answered...), tc.explained)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
