// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// options are what is measured, and where the results go.
type options struct {
	sizes    []size
	variants []variant
	runs     int
	// profile is whether CPU profiles of the operator are stored.
	profile bool
	// add is whether the results of earlier runs with other sizes are kept.
	add bool
	// stored is whether nothing is measured, and the results of earlier runs are used.
	stored bool
	// document is the file that gets the tables; empty for none.
	document string
	// dir is the state folder.
	dir string
}

// numbers are the numbers of a flag, separated by spaces or commas.
type numbers []int

// String implements flag.Value.
func (n *numbers) String() string { return strings.Trim(fmt.Sprint(*n), "[]") }

// Set implements flag.Value.
func (n *numbers) Set(text string) error {
	*n = nil
	for _, field := range fields(text) {
		number, err := strconv.Atoi(field)
		if err != nil || number < 1 {
			return fmt.Errorf("%q is not a positive number", field)
		}
		*n = append(*n, number)
	}
	return nil
}

func fields(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
}

func parseOptions(name string, args []string) (options, error) {
	chosen := options{dir: filepath.Join(".stack", "bench")}
	counts, offerings, runs, only, every := numbers{60, 200}, numbers{1}, 3, "", time.Duration(0)
	if name == smoke {
		counts, runs = numbers{30}, 1
		chosen.dir = filepath.Join(".stack", "bench-smoke")
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Var(&counts, "n", "numbers of Pods, and so of claims; each is measured separately")
	flags.DurationVar(&every, "every", every, "create one Pod after the other, this long apart; 0 creates all at once")
	flags.Var(&offerings, "offerings", "numbers of offerings that the Pods are spread over; each is measured separately")
	flags.BoolVar(&chosen.profile, "profile", os.Getenv("BENCH_PROFILE") == "1", "store CPU profiles of the operator in the state folder")
	if name != smoke {
		flags.IntVar(&runs, "runs", runs, "how often each is measured; the tables have the medians")
		flags.StringVar(&only, "only", only, "what is measured, separated by commas: kwok, cluster-api and operator; default: all")
		flags.BoolVar(&chosen.add, "add", false, "keep the results of earlier runs with other sizes")
		flags.BoolVar(&chosen.stored, "stored", false, "measure nothing, and use the results of earlier runs")
		flags.StringVar(&chosen.document, "document", "", "Markdown file that gets the tables, such as docs/benchmarks.md")
	}
	if err := flags.Parse(args); err != nil {
		return chosen, err
	}
	if flags.NArg() > 0 {
		return chosen, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if runs < 1 {
		return chosen, fmt.Errorf("-runs %d: there must be at least one run", runs)
	}
	chosen.runs = runs
	if chosen.stored {
		chosen.add = true
		return chosen, nil
	}
	for _, n := range counts {
		for _, o := range offerings {
			chosen.sizes = append(chosen.sizes, size{n: n, offerings: o, every: every})
		}
	}
	var err error
	chosen.variants, err = chooseVariants(only)
	if name == smoke {
		chosen.variants = []variant{operatorWithCatalog}
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
