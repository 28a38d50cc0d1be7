// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	"sigs.k8s.io/yaml"
)

func TestParseOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		command       string
		args          []string
		wantSizes     []size
		wantVariants  string
		wantRuns      int
		wantErrorPart string
	}{
		"defaults":          {wantSizes: []size{{n: 60, offerings: 1}, {n: 200, offerings: 1}}, wantVariants: "kwok cluster-api operator", wantRuns: 3},
		"sizes and runs":    {args: []string{"-n", "60, 1000", "-offerings", "1 20", "-runs", "1"}, wantSizes: []size{{n: 60, offerings: 1}, {n: 60, offerings: 20}, {n: 1000, offerings: 1}, {n: 1000, offerings: 20}}, wantVariants: "kwok cluster-api operator", wantRuns: 1},
		"one after another": {args: []string{"-n", "5", "-every", "2s", "-only", "kwok"}, wantSizes: []size{{n: 5, offerings: 1, every: 2 * time.Second}}, wantVariants: "kwok", wantRuns: 3},
		"one variant":       {args: []string{"-only", "operator"}, wantSizes: []size{{n: 60, offerings: 1}, {n: 200, offerings: 1}}, wantVariants: "operator", wantRuns: 3},
		"smoke":             {command: smoke, wantSizes: []size{{n: 30, offerings: 1}}, wantVariants: "operator", wantRuns: 1},
		"stored results":    {args: []string{"-stored"}, wantRuns: 3},
		"unknown variant":   {args: []string{"-only", "aws"}, wantErrorPart: "there is no such variant"},
		"no positive size":  {args: []string{"-n", "0"}, wantErrorPart: "not a positive number"},
		"unexpected":        {args: []string{"now"}, wantErrorPart: `unexpected argument "now"`},
		"not even one run":  {args: []string{"-runs", "0"}, wantErrorPart: "at least one run"},
		"smoke has no runs": {command: smoke, args: []string{"-runs", "2"}, wantErrorPart: "not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(tc.command, tc.args)
			if tc.wantErrorPart != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErrorPart) {
					t.Errorf("got %v, want %q", err, tc.wantErrorPart)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantSizes, got.sizes, cmp.AllowUnexported(size{})); diff != "" {
				t.Errorf("sizes (-want +got):\n%s", diff)
			}
			names := strings.Join(lo.Map(got.variants, func(v variant, _ int) string { return v.name }), " ")
			if names != tc.wantVariants || got.runs != tc.wantRuns {
				t.Errorf("got %s with %d runs, want %s with %d", names, got.runs, tc.wantVariants, tc.wantRuns)
			}
		})
	}
}

func TestShareOf(t *testing.T) {
	for _, n := range []int{0, 1, 30, 60, 200, 1000} {
		for _, parts := range []int{1, 7, 20} {
			total := 0
			for i := range parts {
				share := shareOf(n, parts, i)
				if total += share; share > n/parts+1 {
					t.Errorf("of %d, part %d of %d has %d", n, i, parts, share)
				}
			}
			if total != n {
				t.Errorf("the %d parts have %d, want %d", parts, total, n)
			}
		}
	}
}

func TestRender(t *testing.T) {
	for name, manifests := range map[string]string{
		"operator.yaml": operatorManifests, "kwok.yaml": kwokManifests, "nodepool.yaml": nodePool,
		"cluster-api.yaml": clusterAPIManifests, "instance-types.json": kwokInstanceTypes,
	} {
		rendered, err := render(manifests, 2, nodeClass{Group: "example.com", Kind: "Class"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, document := range strings.Split(string(rendered), "\n---\n") {
			if err := yaml.UnmarshalStrict([]byte(document), new(any)); err != nil {
				t.Errorf("%s: %v in\n%s", name, err, document)
			}
		}
	}
}
