// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/importer"
)

// importOptions are the flags of catalog import.
type importOptions struct {
	importer.Options
	streams genericiooptions.IOStreams
	from    []string
	output  string
	// These are parsed into Options.
	allowance, storage, spotFactor, cpu, memory, gpu string
}

func newImport(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "import",
		Short: "Make an InstanceTypeCatalog from files, without access to a cloud or cluster",
	}
	for _, format := range importer.Formats {
		command.AddCommand(newImportFormat(format, streams))
	}
	return command
}

func newImportFormat(format importer.Format, streams genericiooptions.IOStreams) *cobra.Command {
	o := &importOptions{streams: streams}
	command := &cobra.Command{
		Use:     format.Name + " --from FILE...",
		Short:   "Make an InstanceTypeCatalog from files of " + format.Name,
		Long:    "Make an InstanceTypeCatalog and print it as YAML.\n\n" + format.Help,
		Example: fmt.Sprintf("  kubectl karpenter-capi catalog import %s --from FILE --from FILE --output catalog.yaml", format.Name),
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return o.run(format) },
	}
	flags := command.Flags()
	flags.StringSliceVar(&o.from, "from", nil, "files to read, in any order; - for standard input")
	flags.StringVar(&o.output, "output", "", "file to write; default: standard output")
	flags.StringVar(&o.Name, "name", "", "name of the catalog; default: "+format.Name+" and the region")
	flags.StringSliceVar(&o.Families, "family", nil, "families to import, as patterns, such as m6i,c*")
	flags.StringSliceVar(&o.Sizes, "size", nil, "sizes to import, as patterns, such as large,*xlarge")
	flags.StringSliceVar(&o.Architectures, "architecture", nil, "architectures to import: amd64, arm64")
	flags.StringSliceVar(&o.Zones, "zone", nil, "zones to import, as patterns; for openstack, the names of the zones")
	flags.StringVar(&o.Region, "region", "", "region of the machines, for openstack and csv; default: that of the zones in the data")
	flags.StringVar(&o.allowance, "memory-allowance", format.Allowance.String()+"%", "part of the memory that Nodes do not report, in percent")
	flags.StringVar(&o.storage, "ephemeral-storage", "", "ephemeral storage of all Nodes, such as 77Gi; default: that of the files, if they have it")
	flags.StringVar(&o.Date, "date", "", "day of the data for spec.source, such as 2026-11-20; default: the date in the data, if it has one")
	flags.StringVar(&o.Currency, "currency", "", "currency of prices in files that do not name it, such as USD")
	flags.StringVar(&o.spotFactor, "spot-factor", "", "what to multiply on-demand prices with for spot, where no file has the spot price, such as 0.35")
	flags.StringVar(&o.cpu, "price-cpu", "", "price of one CPU for one hour, for types without a price")
	flags.StringVar(&o.memory, "price-memory", "", "price of one GiB of memory for one hour, for types without a price")
	flags.StringVar(&o.gpu, "price-gpu", "", "price of one GPU for one hour, for types without a price")
	lo.Must0(command.MarkFlagRequired("from"))
	return command
}

func (o *importOptions) run(format importer.Format) error {
	if err := o.parse(); err != nil {
		return err
	}
	files, done, err := open(o.from, o.streams.In)
	defer done()
	if err != nil {
		return err
	}
	result, err := format.Import(files, o.Options)
	if err != nil {
		return err
	}
	content, err := writeYAML(result.Catalog)
	if err != nil {
		return fmt.Errorf("writing the catalog as YAML: %w", err)
	}
	messages := &errWriter{out: o.streams.ErrOut}
	for _, line := range result.Skipped {
		messages.printf("%s\n", line)
	}
	if messages.err != nil {
		return messages.err
	}
	if o.output == "" {
		_, err = o.streams.Out.Write(content)
		return err
	}
	return os.WriteFile(o.output, content, 0o666)
}

// parse parses the flags that are numbers.
func (o *importOptions) parse() error {
	for _, f := range []struct {
		name, text string
		into       **decimal.Decimal
	}{
		{"memory-allowance", strings.TrimSuffix(o.allowance, "%"), &o.MemoryAllowance},
		{"spot-factor", o.spotFactor, &o.SpotFactor},
		{"price-cpu", o.cpu, &o.CPU},
		{"price-memory", o.memory, &o.Memory},
		{"price-gpu", o.gpu, &o.GPU},
	} {
		if f.text == "" {
			continue
		}
		number, err := importer.ParseDecimal(f.text)
		if err != nil {
			return fmt.Errorf("--%s: %w", f.name, err)
		}
		*f.into = &number
	}
	if o.storage != "" {
		quantity, err := resource.ParseQuantity(o.storage)
		if err != nil {
			return fmt.Errorf("--ephemeral-storage %q is not a quantity such as 77Gi", o.storage)
		}
		o.EphemeralStorage = &quantity
	}
	return nil
}

// open opens files. Call the function that it returns when they were read.
func open(names []string, in io.Reader) ([]importer.File, func(), error) {
	var files []importer.File
	var opened []*os.File
	done := func() {
		for _, file := range opened {
			file.Close() //nolint:errcheck // it was only read
		}
	}
	for _, name := range names {
		if name == "-" {
			content, err := io.ReadAll(in)
			if err != nil {
				return nil, done, fmt.Errorf("reading standard input: %w", err)
			}
			files = append(files, importer.File{Name: "standard input", Content: bytes.NewReader(content)})
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, done, fmt.Errorf("--from: %w", err)
		}
		opened = append(opened, file)
		files = append(files, importer.File{Name: name, Content: file})
	}
	return files, done, nil
}
