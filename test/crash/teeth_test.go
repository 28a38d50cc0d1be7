// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/test/counts"
)

// tries is the maximum number of runs to find a bug.
const tries = 4000

// TestSearchHasTeeth plants bugs in the operator, and checks that the search finds each. It tries
// the run that is known to find the bug first. If that does not find it, it tries others, and shows
// which one has found it.
func TestSearchHasTeeth(t *testing.T) {
	for _, bug := range mutants {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			if s, r := find(t, bug.caught); r != nil {
				if wrong := s.finds(*r, &bug); wrong != "" {
					caught(t, bug.name, bug.caught, wrong)
					return
				}
			}
			if name, wrong := searchFor(t, &bug); wrong != "" {
				t.Logf("change the run of this bug in mutants to %s", name)
				caught(t, bug.name, name, wrong)
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

// find returns a run by its name in TestCrashSearch; nil if there is none. For a bug that one run in hundreds finds, it can
// be one more seed of a mode.
func find(t *testing.T, name string) (*search, *run) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return nil, nil
	}
	for _, of := range scalings {
		for _, s := range scenarios {
			if of.name != parts[0] || s.name != parts[1] {
				continue
			}
			search := s.prepare(t, of)
			if i := slices.IndexFunc(search.runs, func(r run) bool { return r.name == parts[2] }); i >= 0 {
				return search, &search.runs[i]
			}
			for _, mode := range modes {
				if seed, err := strconv.ParseInt(strings.TrimPrefix(parts[2], mode.name+"="), 10, 64); err == nil {
					return search, &run{name: parts[2], mode: mode, seed: seed}
				}
			}
		}
	}
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
			return s.of.name + "/" + s.name + "/" + r.name, wrong
		}
	}
	return "", ""
}
