// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	repository = "../.."
	folder     = "api/v1alpha1"
)

// A reason that passes through a field, such as that of a list of problems, could have each value that the field can have.
// Such a value only has to be listed at one of the places that it reaches.
func TestThePageHasTheReasonsThatTheOperatorSets(t *testing.T) {
	constants, err := readConstants(filepath.Join(repository, folder))
	if err != nil {
		t.Fatal(err)
	}
	listed, code := reasonsOf(constants), readCode(t)
	reached, repeats := map[string]map[string]bool{}, map[string]bool{}
	through := map[string]token.Position{}
	for _, set := range code.settings {
		found := code.reach(set)
		if set.place != anEvent && len(found.unknown) > 0 {
			t.Errorf("%s: this test cannot determine which reasons %s gets", strings.Join(found.unknown, ", "), set.place)
		}
		repeats[set.place] = repeats[set.place] || found.repeats
		if reached[set.place] == nil {
			reached[set.place] = map[string]bool{}
		}
		for reason, position := range found.exact {
			reached[set.place][reason] = true
			if reason+"=True" == set.place {
				continue // this is said of all conditions at once
			}
			if set.place != anEvent && !slices.Contains(listed[set.place], reason) {
				t.Errorf("%s: %s gets the reason %s. Its constant in %s needs '  - In: %s' in its comment; then run `make manifests`", position, set.place, reason, folder, set.place)
			}
		}
		for reason, position := range found.others {
			reached[set.place][reason] = true
			if set.place != anEvent {
				through[reason] = position
			}
		}
	}
	for reason, position := range through {
		at := slices.Sorted(maps.Keys(reached))
		at = slices.DeleteFunc(at, func(place string) bool { return place == anEvent || !reached[place][reason] })
		if !slices.ContainsFunc(at, func(place string) bool { return slices.Contains(listed[place], reason) }) {
			t.Errorf("%s: reason %s reaches %s. Its constant in %s needs one of these as '  - In: …' in its comment; then run `make manifests`", position, reason, strings.Join(at, ", "), folder)
		}
	}
	for _, c := range constants {
		if c.isCondition() {
			continue
		}
		places := c.list("In")
		if len(places) == 0 {
			places = []string{anEvent}
		}
		for _, place := range places {
			if !reached[place][c.value] && (!repeats[place] || len(places) == 1) {
				t.Errorf("the comment of %s lists %s, but the operator never sets this reason there", c.name, place)
			}
		}
	}
}

// documented is a package with one condition and one reason.
const documented = `package v1

// ConditionFed reports whether a cat
// is fed.
//   - On: NodeClaim
//   - True: it is.
//   - False: it is not, or
//     a|b is.
//   - Unknown: never.
const ConditionFed = "Fed"

const (
	// ReasonHungry: spec.bowl is empty.
	//   - In: Fed=False, Launched=Unknown
	//   - To do: fill it.
	//   - See: docs/guide.md, docs/guide.md#bowls-and-what-is-in-them
	ReasonHungry = "Hungry"

	// ReasonSeen is the reason of an event.
	ReasonSeen = "Seen"
)

// ConditionCount is a number.
const ConditionCount int = 1
`

// pageOf returns the page of a package with one file.
func pageOf(t *testing.T, content string) (string, error) {
	t.Helper()
	root := t.TempDir()
	for path, content := range map[string]string{"api/types.go": content, "docs/guide.md": "# Cats\n\n## Bowls, and what is in them\n"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return conditionsPage(root, "api")
}

func TestThePageHasWhatCommentsDescribe(t *testing.T) {
	page, err := pageOf(t, documented)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `Fed` | Reports whether a cat is fed. | It is. | It is not, or a\\|b is.<br>`Hungry` | Never. |\n",
		"| `Launched=Unknown` | Karpenter's condition of a NodeClaim, until it has an offering. Karpenter tries again. | `Hungry` |\n",
		"| `Hungry` | `Fed=False`<br>`Launched=Unknown` | spec.bowl is empty. | Fill it. See [Cats](../guide.md) and " +
			"[Bowls, and what is in them](../guide.md#bowls-and-what-is-in-them). |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, unwanted := range []string{"Seen", "Count"} {
		if strings.Contains(page, unwanted) {
			t.Errorf("the page has %q:\n%s", unwanted, page)
		}
	}
}

func TestCommentsMustBeComplete(t *testing.T) {
	for name, tc := range map[string]struct{ replace, with, want string }{
		"condition without a meaning of Unknown": {"//   - Unknown: never.\n", "", "ConditionFed needs a line '  - Unknown: …'"},
		"condition of an unknown kind":           {"On: NodeClaim", "On: Cat", `ConditionFed is on "Cat"`},
		"reason without what to do":              {"//   - To do: fill it.\n", "", "ReasonHungry needs a line '  - To do: …'"},
		"reason without a place":                 {"//   - In: Fed=False, Launched=Unknown\n", "", "ReasonHungry needs a line '  - In: …'"},
		"line of an unknown name":                {"To do: fill", "Todo: fill it.\n\t//   - To do: fill", "ReasonHungry has a line '  - Todo: …'"},
		"condition that does not exist":          {"In: Fed=False", "In: Slept=False", "ReasonHungry names Slept=False"},
		"condition without a status":             {"In: Fed=False", "In: Fed", "ReasonHungry names Fed,"},
		"page that does not exist":               {"docs/guide.md,", "docs/dogs.md,", "the comment of ReasonHungry: "},
		"heading that does not exist":            {"#bowls-and", "#dishes-and", `docs/guide.md has no heading "dishes-and-what-is-in-them"`},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(documented, tc.replace) {
				t.Fatalf("the package has no %q", tc.replace)
			}
			_, err := pageOf(t, strings.Replace(documented, tc.replace, tc.with, 1))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
	t.Run("folder without Go files", func(t *testing.T) {
		if _, err := conditionsPage(repository, "docs"); err == nil {
			t.Error("got no error")
		}
	})
}
