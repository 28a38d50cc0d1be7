// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/karpenter-capi/karpenter-capi/test/contract"
)

// Result is the last run of a suite in a cell.
type Result struct {
	// Date is the day of the run.
	Date string `json:"date"`
	// Commit is what was tested.
	Commit string `json:"commit"`
	Passed bool   `json:"passed"`
}

// CellResults are the last runs in a cell.
type CellResults struct {
	Cell
	// Suites are by name.
	Suites map[string]Result `json:"suites"`
	// Facts are those that the last run of the suite contract has found.
	Facts contract.Results `json:"facts,omitempty"`
}

// file returns the file with the results of a cell.
func (c Cell) file(folder string) string {
	return filepath.Join(folder, c.ClusterAPI+"_"+c.Kubernetes+".json")
}

// read returns the results of a cell. Without a file, there are none.
func read(folder string, cell Cell) (*CellResults, error) {
	results := &CellResults{Cell: cell, Suites: map[string]Result{}}
	data, err := os.ReadFile(cell.file(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return results, nil
	} else if err != nil {
		return nil, err
	}
	return results, json.Unmarshal(data, results)
}

// readAll returns the results of all cells, and the others in the folder: of a Cluster API that is tested, with a version of
// Kubernetes that is none of its cells.
func readAll(folder string, cells []Cell) (all, others []*CellResults, err error) {
	for _, cell := range cells {
		results, err := read(folder, cell)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, results)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		api, kube, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "_")
		cell := Cell{api, kube}
		if slices.Contains(cells, cell) {
			continue
		}
		if !slices.ContainsFunc(cells, func(c Cell) bool { return c.ClusterAPI == api }) {
			return nil, nil, fmt.Errorf("%s is of a version that is not tested: delete it", file)
		}
		results, err := read(folder, cell)
		if err != nil {
			return nil, nil, err
		}
		others = append(others, results)
	}
	return all, others, nil
}

// write writes the results of a cell.
func (r *CellResults) write(folder string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.file(folder), append(data, '\n'), 0o644)
}
