// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/test/harness/counts"
)

// tries is the maximum number of runs to find a bug.
const tries = 4000

// TestSearchHasTeeth plants bugs in the operator, and checks that the search finds each. It tries
// the runs that are known to find the bug first. If none of them does, it tries others, and shows
// which one has found it.
func TestSearchHasTeeth(t *testing.T) {
	for _, bug := range mutants {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			s, runs := find(t, bug.caught)
			for _, r := range runs {
				if wrong := s.finds(r, &bug); wrong != "" {
					caught(t, bug.name, s.nameOf(r), wrong)
					return
				}
			}
			if run, wrong := searchFor(t, &bug); wrong != "" {
				t.Logf("no run of %s finds this bug any more: change them in mutants", bug.caught)
				caught(t, bug.name, run, wrong)
				return
			}
			t.Errorf("not found in %d runs", tries)
		})
	}
}

// caught prints which run has found a bug.
func caught(t *testing.T, bug, run, wrong string) {
	t.Helper()
	t.Logf("caught by %s: %s", run, wrong)
	counts.Print(t, fmt.Sprintf("planted bug %q is caught by %s: %s", bug, run, wrong))
}

// finds returns which invariant is violated in a run with a bug and not in the same run without it.
func (s *search) finds(r run, bug *mutant) string {
	wrong := s.do(r, bug).failure
	if wrong == "" || s.wrong(r, s.do(r, nil)) != "" {
		return ""
	}
	first, _, _ := strings.Cut(wrong, "\n")
	return first
}

// nameOf returns the name of a run in TestCrashSearch.
func (s *search) nameOf(r run) string { return s.of.name + "/" + s.name + "/" + r.name }

// find returns the runs with a fault or a mode, by the names of TestCrashSearch.
func find(t *testing.T, name string) (*search, []run) {
	for _, of := range scalings {
		for _, s := range scenarios {
			if how, is := strings.CutPrefix(name, of.name+"/"+s.name+"/"); is {
				all := s.prepare(t, of)
				return all, slices.DeleteFunc(slices.Clone(all.runs), func(r run) bool { return !strings.HasPrefix(r.name, how+"=") })
			}
		}
	}
	t.Fatalf("there is no run %s", name)
	return nil, nil
}

// searchFor tries one run after the other until one finds a bug, and returns its name and the
// violation.
func searchFor(t *testing.T, bug *mutant) (name, wrong string) {
	var searches []*search
	for _, of := range scalings {
		for _, s := range scenarios {
			if slices.Contains(s.of, of) {
				searches = append(searches, s.prepare(t, of))
			}
		}
	}
	random := rand.New(rand.NewSource(1))
	for range tries {
		s := searches[random.Intn(len(searches))]
		r := s.runs[random.Intn(len(s.runs))]
		if wrong := s.finds(r, bug); wrong != "" {
			return s.nameOf(r), wrong
		}
	}
	return "", ""
}
