// SPDX-License-Identifier: Apache-2.0

// Command matrix runs tests with several versions of Cluster API and Kubernetes, and records the results.
//
//	matrix list  prints all cells as JSON, for the nightly workflow
//	matrix run   runs the suites in each cell, or in one (-capi, -kubernetes), and writes the results and the page
//	matrix page  writes the page from the results
//
// A cell is one version of Cluster API with one of Kubernetes. Each has a file in hack/matrix/results, from which the tables of
// docs/compatibility.md are generated. A suite that fails does not end the run, but the command fails.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/contract"
)

// suite is one kind of tests.
type suite struct {
	name, title string
	// arguments are those of make: the end-to-end tests run without turns, so that a result does not depend on the commit.
	arguments []string
	// pinned is set if it runs only with the version of Cluster API in go.mod.
	pinned bool
}

// contractSuite checks the facts.
const contractSuite = "contract"

// suites are all suites. The integration tests import Cluster API's reconcilers, which other versions have elsewhere and do not
// export.
var suites = []suite{
	{contractSuite, "facts", []string{"test-contract"}, false},
	{"e2e", "end-to-end", []string{"test-e2e", "ROTATION=all"}, false},
	{"integration", "integration", []string{"test-integration"}, true},
}

// runsIn reports whether the suite runs in a cell. Current is the version of Cluster API in go.mod.
func (s suite) runsIn(cell Cell, current string) bool { return !s.pinned || cell.ClusterAPI == current }

// The paths in the repository.
const (
	resultsFolder = "hack/matrix/results"
	pageFile      = "docs/compatibility.md"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("usage: matrix list|run|page [flags], in the repository")
	}
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	api := flags.String("capi", "", "run only cells with this version of Cluster API")
	kube := flags.String("kubernetes", "", "run only cells with this version of Kubernetes")
	names := flags.String("suites", "contract,e2e,integration", "the suites to run")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	all, err := cells(".")
	if err != nil {
		return err
	}
	switch arguments[0] {
	case "list":
		return json.NewEncoder(os.Stdout).Encode(all)
	case "page":
		return writePage(all)
	case "run":
		chosen := slices.DeleteFunc(slices.Clone(all), func(cell Cell) bool {
			return *api != "" && cell.ClusterAPI != *api || *kube != "" && cell.Kubernetes != *kube
		})
		if len(chosen) == 0 {
			return fmt.Errorf("no cell has Cluster API %q and Kubernetes %q; hack/tools/versions.txt has the versions", *api, *kube)
		}
		return errors.Join(runCells(chosen, all[len(all)-1].ClusterAPI, strings.Split(*names, ",")), writePage(all))
	}
	return fmt.Errorf("there is no command %q", arguments[0])
}

// runCells runs suites in cells, one after the other.
func runCells(chosen []Cell, current string, names []string) error {
	commit, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	var failed []error
	for _, cell := range chosen {
		for _, suite := range suites {
			if !slices.Contains(names, suite.name) || !suite.runsIn(cell, current) {
				continue
			}
			results, err := read(resultsFolder, cell)
			if err != nil {
				return err
			}
			err = results.run(suite)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s with Cluster API %s and Kubernetes %s: %w", suite.name, cell.ClusterAPI, cell.Kubernetes, err))
			}
			results.Suites[suite.name] = Result{Date: time.Now().UTC().Format(time.DateOnly), Commit: strings.TrimSpace(string(commit)), Passed: err == nil}
			if err := results.write(resultsFolder); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}

// run runs a suite, and reads what it has found about facts.
func (r *CellResults) run(suite suite) error {
	folder, err := os.MkdirTemp("", "matrix-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // It is in the folder of temporary files.
	file := filepath.Join(folder, "facts.json")
	command := exec.Command("make", append(slices.Clone(suite.arguments), "CAPI="+r.ClusterAPI, "KUBERNETES="+r.Kubernetes)...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), contract.ResultsVariable+"="+file)
	failed := command.Run()
	if suite.name != contractSuite {
		return failed
	}
	facts, err := contract.ReadResults(file)
	if err == nil {
		r.Facts = facts
	}
	return cmp.Or(failed, err)
}

// writePage writes the tables of the page.
func writePage(all []Cell) error {
	document, err := os.ReadFile(pageFile)
	if err != nil {
		return err
	}
	results, others, err := readAll(resultsFolder, all)
	if err != nil {
		return err
	}
	text, err := page(string(document), contract.Facts, results, others)
	if err != nil {
		return fmt.Errorf("%s: %w", pageFile, err)
	}
	return os.WriteFile(pageFile, []byte(text), 0o644)
}
