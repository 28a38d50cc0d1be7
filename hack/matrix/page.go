// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-capi/karpenter-capi/hack/generated"
	"github.com/karpenter-capi/karpenter-capi/test/contract"
)

// notYet is the text for a suite that has not run.
const notYet = "not yet"

// page returns a page with the tables of the results of all cells, and of facts that were checked with other versions of Kubernetes.
func page(document string, facts []contract.Fact, all, others []*CellResults) (string, error) {
	document, err := generated.Replace(document, "cells", cellsTable(all))
	if err != nil {
		return "", err
	}
	return generated.Replace(document, "facts", factsTable(facts, versionsOf(all), slices.Concat(all, others)))
}

// cellsTable has a row for each cell and a column for each suite.
func cellsTable(all []*CellResults) string {
	var b strings.Builder
	b.WriteString("| Cluster API | Kubernetes |")
	for _, suite := range suites {
		fmt.Fprintf(&b, " %s |", suite.title)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(suites)) + "\n")
	for _, cell := range all {
		fmt.Fprintf(&b, "| %s | %s |", cell.ClusterAPI, cell.Kubernetes)
		for _, suite := range suites {
			fmt.Fprintf(&b, " %s |", cell.text(suite, all))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// text returns the result of a suite.
func (r *CellResults) text(suite suite, all []*CellResults) string {
	result, ran := r.Suites[suite.name]
	switch {
	case !suite.runsIn(r.Cell, last(all)):
		return "–"
	case !ran:
		return notYet
	case !result.Passed:
		return "**failed** " + result.Date
	}
	return "passed " + result.Date
}

// last returns the newest version of Cluster API, which is that of go.mod.
func last(all []*CellResults) string {
	return slices.MaxFunc(all, func(a, b *CellResults) int { return compare(a.ClusterAPI, b.ClusterAPI) }).ClusterAPI
}

// factsTable has a row for each fact and a column for each version of Cluster API. The first row has the last runs. Below are the
// facts that do not hold everywhere, with what the operator does.
func factsTable(facts []contract.Fact, versions []string, all []*CellResults) string {
	var b, notes strings.Builder
	b.WriteString("| fact | used by | " + strings.Join(versions, " | ") + " |\n")
	b.WriteString("| --- | --- |" + strings.Repeat(" --- |", len(versions)) + "\n| last run | |")
	for _, version := range versions {
		fmt.Fprintf(&b, " %s |", runText(lastRun(version, all)))
	}
	b.WriteString("\n")
	number := 0
	for _, fact := range facts {
		fmt.Fprintf(&b, "| %s | `%s` |", fact.Text, fact.Home)
		noted := map[string]int{}
		for _, version := range versions {
			differs := fact.DiffersIn(version)
			if differs != "" && noted[differs] == 0 {
				number++
				noted[differs] = number
				fmt.Fprintf(&notes, "%d. %s.\n", number, differs)
			}
			fmt.Fprintf(&b, " %s |", factText(fact, noted[differs], lastRun(version, all)))
		}
		b.WriteString("\n")
	}
	if notes.Len() > 0 {
		b.WriteString("\n" + notes.String())
	}
	return b.String()
}

// lastRun returns the results with the last check of facts in a version of Cluster API; nil without any.
func lastRun(version string, all []*CellResults) *CellResults {
	var last *CellResults
	for _, cell := range all {
		if cell.ClusterAPI == version && len(cell.Facts) > 0 && (last == nil || cell.Suites[contractSuite].Date >= last.Suites[contractSuite].Date) {
			last = cell
		}
	}
	return last
}

// runText describes a run.
func runText(run *CellResults) string {
	if run == nil {
		return notYet
	}
	return run.Suites[contractSuite].Date + ", Kubernetes " + run.Kubernetes
}

// factText returns whether a fact holds according to a run, with the number of the note.
func factText(fact contract.Fact, note int, run *CellResults) string {
	if run == nil {
		return notYet
	}
	found, checked := run.Facts[fact.Name]
	switch {
	case !checked:
		return notYet
	case found == "" && note == 0:
		return "yes"
	case found != "" && note > 0:
		return fmt.Sprintf("no (%d)", note)
	}
	return "**unexpected**"
}

// versionsOf returns the versions of Cluster API.
func versionsOf(all []*CellResults) []string {
	var versions []string
	for _, cell := range all {
		if !slices.Contains(versions, cell.ClusterAPI) {
			versions = append(versions, cell.ClusterAPI)
		}
	}
	return versions
}
