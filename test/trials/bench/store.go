// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
)

// keep stores the results of this and, with -add, of earlier runs, and returns all of them. A result of this run replaces
// those of earlier runs with the same size and variant.
func keep(options options, results []result) ([]result, error) {
	if options.add {
		earlier, err := load(options.results)
		if err != nil {
			return nil, err
		}
		results = merge(earlier, results)
	}
	data, err := encode(results)
	if err != nil {
		return nil, err
	}
	return results, errors.Join(os.MkdirAll(filepath.Dir(options.results), 0o755), os.WriteFile(options.results, data, 0o644))
}

// encode returns results as a JSON array with one of them in each line.
func encode(results []result) ([]byte, error) {
	lines := make([]string, 0, len(results))
	for i := range results {
		line, err := json.Marshal(&results[i])
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(line))
	}
	return []byte("[\n" + strings.Join(lines, ",\n") + "\n]\n"), nil
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
		waves        int
	}
	keyOf := func(r result) key { return key{r.Variant, r.N, r.Offerings, r.Every, r.Waves} }
	replaced := lo.SliceToMap(results, func(r result) (key, bool) { return keyOf(r), true })
	kept := lo.Filter(earlier, func(r result, _ int) bool { return !replaced[keyOf(r)] })
	return slices.Concat(kept, results)
}
