// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	"sigs.k8s.io/yaml"
)

func TestParseOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args          []string
		want          string // the loads with the offerings and the variants of all runs
		wantErrorPart string
	}{
		"defaults":          {args: []string{"-runs", "1", "-only", "operator"}, want: "operator 60 Pods, one every 2s; operator 1 Pod; operator 10 Pods; operator 200 Pods"},
		"sizes":             {args: []string{"-n", "60, 1000", "-offerings", "1 20", "-runs", "1", "-only", "kwok"}, want: "kwok 60 Pods; kwok 1000 Pods; kwok 60 Pods in 20 offerings; kwok 1000 Pods in 20 offerings"},
		"one after another": {args: []string{"-n", "5@2s,5", "-runs", "1", "-only", "kwok"}, want: "kwok 5 Pods, one every 2s; kwok 5 Pods"},
		"in waves":          {args: []string{"-n", "50:20", "-runs", "1", "-only", "kwok"}, want: "kwok 50 Pods, 20 at a time"},
		"waves with a pace": {args: []string{"-n", "50:20@2s"}, wantErrorPart: "both one after the other and so many at a time"},
		"beside Nodes":      {args: []string{"-n", "500+50", "-offerings", "2", "-runs", "1", "-only", "operator"}, want: "operator 50 Pods in 2 offerings beside 500 Nodes"},
		"beside no Nodes":   {args: []string{"-n", "0+50", "-only", "operator"}, wantErrorPart: "not a positive number"},
		"kwok beside Nodes": {args: []string{"-n", "500+50"}, wantErrorPart: "only -only operator can be measured"},
		"two beside Nodes":  {args: []string{"-n", "500+50 10", "-only", "operator"}, wantErrorPart: "must be the only one"},
		"too few Nodes":     {args: []string{"-n", "2+50", "-offerings", "1 3", "-only", "operator"}, wantErrorPart: "2 Nodes cannot exist in 3 offerings"},
		"no wave":           {args: []string{"-n", "50:0"}, wantErrorPart: "not a positive number"},
		"three runs":        {args: []string{"-n", "60", "-only", "operator"}, want: "operator 60 Pods; operator 60 Pods; operator 60 Pods"},
		"all variants":      {args: []string{"-n", "60", "-runs", "2"}, want: "kwok 60 Pods; cluster-api 60 Pods; operator 60 Pods; kwok 60 Pods; cluster-api 60 Pods; operator 60 Pods"},
		"stored results":    {args: []string{"-stored"}},
		"unknown variant":   {args: []string{"-only", "aws"}, wantErrorPart: "there is no such variant"},
		"no pace":           {args: []string{"-n", "5@0s"}, wantErrorPart: "not a positive duration"},
		"no positive size":  {args: []string{"-n", "0"}, wantErrorPart: "not a positive number"},
		"unexpected":        {args: []string{"now"}, wantErrorPart: `unexpected argument "now"`},
		"not even one run":  {args: []string{"-runs", "0"}, wantErrorPart: "at least one run"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(tc.args)
			if tc.wantErrorPart != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErrorPart) {
					t.Errorf("got %v, want %q", err, tc.wantErrorPart)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			measured := strings.Join(lo.FlatMap(got.measured, func(p planned, _ int) []string {
				return lo.Map(p.sizes, func(s size, _ int) string { return p.variant.name + " " + s.String() })
			}), "; ")
			if diff := cmp.Diff(tc.want, measured); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
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
