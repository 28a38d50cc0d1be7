// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/samber/lo"
)

// keep stores the results of this and, with -add, of earlier runs in the state folder, and returns all of them. A result
// of this run replaces those of earlier runs with the same size and variant.
func keep(options options, results []result) ([]result, error) {
	file := filepath.Join(options.dir, "results.json")
	if options.add {
		earlier, err := load(file)
		if err != nil {
			return nil, err
		}
		results = merge(earlier, results)
	}
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return nil, err
	}
	return results, os.WriteFile(file, append(data, '\n'), 0o644)
}

func load(file string) ([]result, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var results []result
	err = json.Unmarshal(data, &results)
	return results, err
}

// merge returns new results, and the earlier ones of other sizes and variants.
func merge(earlier, results []result) []result {
	type key struct {
		variant      string
		n, offerings int
		every        time.Duration
	}
	keyOf := func(r result) key { return key{r.Variant, r.N, r.Offerings, r.Every} }
	replaced := lo.SliceToMap(results, func(r result) (key, bool) { return keyOf(r), true })
	kept := lo.Filter(earlier, func(r result, _ int) bool { return !replaced[keyOf(r)] })
	return slices.Concat(kept, results)
}
