// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func newDiff(streams genericiooptions.IOStreams) *cobra.Command {
	o := newClusterOptions(streams)
	format := ""
	command := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what applying an InstanceTypeCatalog would change",
		Long: "Show what applying an InstanceTypeCatalog would change: instance types, prices and others. The API server\n" +
			"computes it with a dry run. The exit code is 0 without differences, 1 with differences, and 2 after an error.",
		Example: "  kubectl karpenter-capi catalog diff -f catalog.yaml",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			printer, known := differencePrinters[format]
			if !known {
				return comparisonFailed{fmt.Errorf("--output %q: expected json or yaml", format)}
			}
			found, err := o.compare(command)
			if err != nil {
				return comparisonFailed{err}
			}
			if found.empty() {
				return nil
			}
			if err := printer(o.streams.Out, found); err != nil {
				return comparisonFailed{err}
			}
			return reported{}
		},
	}
	o.addFlags(command)
	command.Flags().StringVarP(&format, "output", "o", "", "output format: json or yaml; default: text")
	return command
}

// compare returns what applying the file would change.
func (o *clusterOptions) compare(command *cobra.Command) (*Differences, error) {
	given, c, err := o.connect()
	if err != nil {
		return nil, err
	}
	before, err := current(command.Context(), c, given.Name)
	if err != nil {
		return nil, fmt.Errorf("reading InstanceTypeCatalog %s: %w", given.Name, err)
	}
	after, err := o.apply(command.Context(), c, given, true)
	if err != nil {
		return nil, err
	}
	if before == nil {
		before = &v1alpha1.InstanceTypeCatalog{}
	}
	return Compare(before, after), nil
}

// differencePrinters print differences in the formats of --output.
var differencePrinters = map[string]func(io.Writer, *Differences) error{
	"": printText,
	"json": func(out io.Writer, d *Differences) error {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(d)
	},
	"yaml": func(out io.Writer, d *Differences) error {
		content, err := yaml.Marshal(d)
		if err == nil {
			_, err = out.Write(content)
		}
		return err
	},
}

func printText(out io.Writer, d *Differences) error {
	w := &errWriter{out: out}
	w.printf("%s %s\n", v1alpha1.CatalogKind, d.Catalog)
	for _, change := range d.Other {
		w.printf("  ~ %s\n", change)
	}
	for _, name := range d.Removed {
		w.printf("  - %s\n", name)
	}
	for _, name := range d.Added {
		w.printf("  + %s\n", name)
	}
	for _, changed := range d.Changed {
		w.printf("  ~ %s\n", changed.Name)
		for _, p := range changed.Prices {
			w.printf("      price %s: %s → %s\n", p.Offering, p.From, p.To)
		}
		for _, change := range changed.Other {
			w.printf("      %s\n", change)
		}
	}
	w.printf("%d instance types added, %d removed, %d changed\n", len(d.Added), len(d.Removed), len(d.Changed))
	return w.err
}

// errWriter keeps the first error of several writes.
type errWriter struct {
	out io.Writer
	err error
}

func (w *errWriter) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format, args...)
	}
}
