// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// options are what is measured, and where the results go.
type options struct {
	// measured are the runs, in order, each on its own stack.
	measured []planned
	// profile is whether CPU profiles of the operator are stored.
	profile bool
	// add is whether the results of earlier runs with other sizes are kept.
	add bool
	// stored is whether nothing is measured, and the results of earlier runs are used.
	stored bool
	// results is the file with the results.
	results string
	// documents are the files that get the tables.
	documents []string
	// dir is the state folder.
	dir string
}

// planned is a run that is to be measured: loads with the same number of offerings, one after the other.
type planned struct {
	variant variant
	sizes   []size
	run     int
}

// loads are the loads of a flag, separated by spaces or commas: a number of Pods that are created at once, or, such as 60@2s,
// one after the other, or, such as 5000:250, so many at a time. 5000+250 are 250 Pods beside 5,000 Nodes.
type loads []size

// String implements flag.Value.
func (l *loads) String() string {
	return strings.Join(lo.Map(*l, func(s size, _ int) string { return s.load() }), " ")
}

// Set implements flag.Value.
func (l *loads) Set(text string) error {
	*l = nil
	for _, field := range fields(text) {
		load, err := size{}, error(nil)
		if standing, pods, beside := strings.Cut(field, "+"); beside {
			if load.standing, err = positive(standing); err != nil {
				return err
			}
			field = pods
		}
		count, every, paced := strings.Cut(field, "@")
		count, wave, inWaves := strings.Cut(count, ":")
		if load.n, err = positive(count); err != nil {
			return err
		}
		if inWaves && paced {
			return fmt.Errorf("%q is both one after the other and so many at a time", field)
		}
		if inWaves {
			if load.waves, err = positive(wave); err != nil {
				return err
			}
		}
		if paced {
			if load.every, err = time.ParseDuration(every); err != nil || load.every <= 0 {
				return fmt.Errorf("%q is not a positive duration", every)
			}
		}
		*l = append(*l, load)
	}
	return nil
}

// numbers are the numbers of a flag, separated by spaces or commas.
type numbers []int

// String implements flag.Value.
func (n *numbers) String() string { return strings.Trim(fmt.Sprint(*n), "[]") }

// Set implements flag.Value.
func (n *numbers) Set(text string) error {
	*n = nil
	for _, field := range fields(text) {
		number, err := positive(field)
		if err != nil {
			return err
		}
		*n = append(*n, number)
	}
	return nil
}

func positive(text string) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return 0, fmt.Errorf("%q is not a positive number", text)
	}
	return number, nil
}

func fields(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
}

// parseOptions reads the flags of the command bench.
func parseOptions(args []string) (options, error) {
	chosen := options{dir: filepath.Join(".stack", "bench")}
	counts, offerings, runs, only := loads{paced, {n: 1}, {n: 10}, {n: 200}}, numbers{1}, 3, ""
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Var(&counts, "n", "numbers of Pods, and so of claims, that are created at once or, such as 60@2s, one after the other or, such as 5000:250, so many when all earlier ones run, or, such as 5000+250, beside so many Nodes; each is measured separately")
	flags.Var(&offerings, "offerings", "numbers of offerings that the Pods are spread over; each is measured separately")
	flags.BoolVar(&chosen.profile, "profile", os.Getenv("BENCH_PROFILE") == "1", "store CPU profiles of the operator in the state folder")
	flags.IntVar(&runs, "runs", runs, "how often each is measured; the tables have the medians")
	flags.StringVar(&only, "only", only, "what is measured, separated by commas: kwok, cluster-api and operator; default: all")
	flags.BoolVar(&chosen.add, "add", false, "keep the results of earlier runs with other sizes")
	flags.BoolVar(&chosen.stored, "stored", false, "measure nothing, and use the results of earlier runs")
	flags.StringVar(&chosen.results, "results", filepath.Join(chosen.dir, "results.json"), "JSON file with the results")
	documents := flags.String("documents", "", "Markdown files that get the tables, and the folder of the first the pictures, such as docs/benchmarks.md,docs/design/benchmarks.md")
	if err := flags.Parse(args); err != nil {
		return chosen, err
	}
	chosen.documents = fields(*documents)
	if flags.NArg() > 0 {
		return chosen, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if runs < 1 {
		return chosen, fmt.Errorf("-runs %d: there must be at least one run", runs)
	}
	if chosen.stored {
		chosen.add = true
		return chosen, nil
	}
	measured, err := chooseVariants(only)
	if err == nil && slices.ContainsFunc(counts, func(load size) bool { return load.standing > 0 }) {
		switch {
		case len(measured) != 1 || measured[0].component != stack.Operator:
			err = errors.New("only -only operator can be measured beside Nodes that exist")
		case len(counts) > 1:
			err = errors.New("a load beside Nodes that exist must be the only one")
		case counts[0].standing < slices.Max(offerings):
			err = fmt.Errorf("%d Nodes cannot exist in %d offerings", counts[0].standing, slices.Max(offerings))
		}
	}
	for _, o := range offerings {
		sizes := lo.Map(counts, func(load size, _ int) size {
			load.offerings = o
			return load
		})
		for run := range runs {
			for _, v := range measured {
				chosen.measured = append(chosen.measured, planned{v, sizes, run + 1})
			}
		}
	}
	return chosen, err
}

// chooseVariants returns the variants with the given names, or all.
func chooseVariants(only string) ([]variant, error) {
	if only == "" {
		return variants, nil
	}
	var chosen []variant
	known := map[string]bool{}
	for _, v := range variants {
		known[v.name] = true
		for _, name := range fields(only) {
			if v.name == name {
				chosen = append(chosen, v)
			}
		}
	}
	for _, name := range fields(only) {
		if !known[name] {
			return nil, fmt.Errorf("-only %s: there is no such variant: use kwok, cluster-api or operator", name)
		}
	}
	return chosen, nil
}
