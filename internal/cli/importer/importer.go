// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// File is one input.
type File struct {
	// Name is the name of the file, for errors.
	Name    string
	Content io.ReadSeeker
}

// Options are what the user chooses.
type Options struct {
	// Name of the catalog. Default: the format and the region.
	Name string
	// Families, Sizes, Architectures and Zones are patterns, as in path.Match. A machine must
	// match one of each that is set. For OpenStack, Zones are the names of the zones.
	Families, Sizes, Architectures, Zones []string
	// Region of the machines. Default: that in the data, if it has one.
	Region string
	// MemoryAllowance is the part of the memory that Nodes do not report, in percent.
	// Default: that of the format.
	MemoryAllowance *decimal.Decimal
	// EphemeralStorage is that of all machines. Default: what the files have, if they do.
	EphemeralStorage *resource.Quantity
	// Date of the data, such as 2026-11-20. Default: the date in the data, if it has one.
	Date string
	// Currency of the prices. Default: the currency in the data.
	Currency string
	// SpotFactor is multiplied with on-demand prices to get the prices of spot, for machines
	// whose spot prices no file has.
	SpotFactor *decimal.Decimal
	// CPU, Memory and GPU are prices, from which those that no file has are computed.
	CPU, Memory, GPU *decimal.Decimal
}

// Format is a kind of input.
type Format struct {
	// Name of the format, such as aws.
	Name string
	// Help describes the files and the commands that print them.
	Help string
	// Allowance is the default of Options.MemoryAllowance.
	Allowance decimal.Decimal

	read func(files []File, options *Options) (*inventory, error)
}

// Formats are all formats.
var Formats = []Format{awsFormat, azureFormat, gcpFormat, openstackFormat, csvFormat}

// Result is an imported catalog.
type Result struct {
	Catalog *v1alpha1.InstanceTypeCatalog
	// Skipped describes what was left out and why, a line each.
	Skipped []string
}

// Import returns the catalog that the files describe.
func (f Format) Import(files []File, options Options) (*Result, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("there are no files: name them with --from")
	}
	found, err := f.read(files, &options)
	if err != nil {
		return nil, err
	}
	if options.MemoryAllowance == nil {
		options.MemoryAllowance = &f.Allowance
	}
	catalog, err := build(f.Name, found, &options)
	if err != nil {
		return nil, err
	}
	return &Result{Catalog: catalog, Skipped: found.skipped.lines()}, nil
}

// skips counts the machines that were left out, by reason.
type skips map[string][]string

// maxNamed is how many of them a line names.
const maxNamed = 5

func (s skips) add(reason, name string) { s[reason] = append(s[reason], name) }

func (s skips) lines() []string {
	return lo.Map(slices.Sorted(maps.Keys(s)), func(reason string, _ int) string {
		names := slices.Compact(slices.Sorted(slices.Values(s[reason])))
		more := ""
		if len(names) > maxNamed {
			more = fmt.Sprintf(" and %d more", len(names)-maxNamed)
		}
		return fmt.Sprintf("skipped instance types %s: %s%s", reason, strings.Join(names[:min(len(names), maxNamed)], ", "), more)
	})
}
