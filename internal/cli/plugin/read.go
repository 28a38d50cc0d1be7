// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/samber/lo"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// source is from where commands read both clusters.
type source struct {
	connect func(context.Context, *view.Options) (*clients.Clusters, error)
	// workload returns a client for the workload cluster that reads from the API server.
	workload func(*view.Options) (client.Client, error)
	now      func() time.Time
}

// clusterSource reads the clusters of the user's kubeconfigs.
func clusterSource() source {
	return source{
		connect: func(ctx context.Context, options *view.Options) (*clients.Clusters, error) {
			return options.Connect(ctx)
		},
		workload: (*view.Options).WorkloadClient,
		now:      time.Now,
	}
}

// reader is what commands that only read have in common.
type reader struct {
	source
	streams genericiooptions.IOStreams
	options *view.Options
	format  string
	formats []string
}

// newReader returns a reader, and adds its flags to a command. Formats are the values of --output besides json and yaml.
func newReader(from source, streams genericiooptions.IOStreams, command *cobra.Command, formats ...string) *reader {
	r := &reader{source: from, streams: streams, options: view.NewOptions(), formats: append(formats, "json", "yaml")}
	r.options.AddFlags(command.Flags())
	command.Flags().StringVarP(&r.format, "output", "o", "", "output format: "+strings.Join(r.formats, ", ")+"; default: text")
	lo.Must0(command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(r.formats, cobra.ShellCompDirectiveNoFileComp)))
	return r
}

// open connects to both clusters.
func (r *reader) open(ctx context.Context) (*clients.Clusters, error) {
	if err := r.checkFormat(); err != nil {
		return nil, err
	}
	// What the clients log, such as a watch that failed, would be between the lines of the output.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	return r.connect(ctx, r.options)
}

// checkFormat returns an error if --output has none of the formats.
func (r *reader) checkFormat() error {
	if r.format != "" && !slices.Contains(r.formats, r.format) {
		return fmt.Errorf("--output %q: expected one of %s", r.format, strings.Join(r.formats, ", "))
	}
	return nil
}

// read connects, and reads both clusters once.
func (r *reader) read(ctx context.Context) (*view.View, error) {
	clusters, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	return view.Read(ctx, clusters, r.now())
}

// print prints a value in the chosen format. text prints it for people.
func (r *reader) print(out io.Writer, value any, text func(io.Writer) error) error {
	switch r.format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		content, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(content)
		}
		return err
	default:
		return text(out)
	}
}

// namespace returns the namespace of the flag or of the kubeconfig.
func (r *reader) namespace() (string, error) {
	namespace, _, err := r.options.Workload.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// table prints rows below their headers, in columns.
func table(out io.Writer, headers []string, rows [][]string) error {
	var columns bytes.Buffer
	w := printers.GetNewTabWriter(&columns)
	for _, row := range slices.Concat([][]string{headers}, rows) {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(columns.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// isTerminal reports whether people see the output at once.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
}

// age returns how old something is, as kubectl shows it.
func age(now, created time.Time) string {
	if created.IsZero() {
		return "–"
	}
	return duration.HumanDuration(now.Sub(created))
}

// price returns a price with at most four digits behind the point; – if it is nil.
func price(value *float64) string {
	if value == nil {
		return "–"
	}
	return amount(*value)
}

func amount(value float64) string { return strconv.FormatFloat(value, 'f', 4, 64) }

// money returns an amount of money for a month.
func money(value float64) string { return strconv.FormatFloat(value, 'f', 2, 64) }
