// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/samber/lo"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// FieldOwner is the field manager of catalogs that the plugin applies.
const FieldOwner = "karpenter-capi-catalog"

// clusterOptions are the flags of commands that compare a file with the cluster.
type clusterOptions struct {
	streams genericiooptions.IOStreams
	config  *genericclioptions.ConfigFlags
	file    string
	force   bool
}

func newClusterOptions(streams genericiooptions.IOStreams) clusterOptions {
	config := genericclioptions.NewConfigFlags(true)
	config.Namespace = nil // a catalog has none
	return clusterOptions{streams: streams, config: config}
}

func (o *clusterOptions) addFlags(command *cobra.Command) {
	o.config.AddFlags(command.Flags())
	command.Flags().StringVarP(&o.file, "filename", "f", "", "file with an InstanceTypeCatalog; - for standard input")
	command.Flags().BoolVar(&o.force, "force-conflicts", false, "take the ownership of fields that another field manager has set")
	lo.Must0(command.MarkFlagRequired("filename"))
}

func newApply(streams genericiooptions.IOStreams) *cobra.Command {
	o := newClusterOptions(streams)
	printing := genericclioptions.NewPrintFlags("serverside-applied").WithTypeSetter(scheme())
	dryRun, factor := false, 0.0
	command := &cobra.Command{
		Use:     "apply -f FILE",
		Short:   "Apply an InstanceTypeCatalog to the cluster, server-side",
		Example: "  kubectl karpenter-capi catalog apply -f catalog.yaml\n  kubectl karpenter-capi catalog apply -f catalog.yaml --max-price-factor 3",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if dryRun {
				lo.Must0(printing.Complete("%s (server dry run)"))
			}
			printer, err := printing.ToPrinter()
			if err != nil {
				return err
			}
			given, c, err := o.connect()
			if err != nil {
				return err
			}
			if err := refuseJumps(command.Context(), c, given, factor); err != nil {
				return err
			}
			applied, err := o.apply(command.Context(), c, given, dryRun)
			if err != nil {
				return err
			}
			return printer.PrintObj(applied, o.streams.Out)
		},
	}
	o.addFlags(command)
	printing.AddFlags(command)
	command.Flags().BoolVar(&dryRun, "dry-run", false, "send the request without storing the catalog")
	command.Flags().Float64Var(&factor, "max-price-factor", 0, "apply nothing if a price would rise or fall by more than this factor; 0 for no limit")
	return command
}

// connect returns the catalog in the file, and a client for the cluster.
func (o *clusterOptions) connect() (*v1alpha1.InstanceTypeCatalog, client.Client, error) {
	given, err := o.read()
	if err != nil {
		return nil, nil, err
	}
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme()})
	return given, c, err
}

// apply applies a catalog, and returns what the API server has then.
func (o *clusterOptions) apply(ctx context.Context, c client.Client, given *v1alpha1.InstanceTypeCatalog, dryRun bool) (*v1alpha1.InstanceTypeCatalog, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(given)
	if err != nil {
		return nil, fmt.Errorf("InstanceTypeCatalog %s: %w", given.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	options := []client.ApplyOption{client.FieldOwner(FieldOwner)}
	if o.force {
		options = append(options, client.ForceOwnership)
	}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...); err != nil {
		if apierrors.IsConflict(err) {
			return nil, fmt.Errorf("InstanceTypeCatalog %s: another field manager has set fields of it; to take them over, set --force-conflicts: %w", given.Name, err)
		}
		return nil, fmt.Errorf("applying InstanceTypeCatalog %s: %w", given.Name, err)
	}
	applied := &v1alpha1.InstanceTypeCatalog{}
	return applied, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, applied)
}

// read returns the catalog in the file, with what a user writes and nothing that a cluster adds.
func (o *clusterOptions) read() (*v1alpha1.InstanceTypeCatalog, error) {
	content, err := readFile(o.file, o.streams.In)
	if err != nil {
		return nil, err
	}
	found := &v1alpha1.InstanceTypeCatalog{}
	if err := yaml.UnmarshalStrict(content, found); err != nil {
		return nil, fmt.Errorf("%s: expected one %s: %w", o.file, v1alpha1.CatalogKind, err)
	}
	if want := v1alpha1.GroupVersion.WithKind(v1alpha1.CatalogKind); found.GroupVersionKind() != want || found.Name == "" {
		return nil, fmt.Errorf("%s: expected a %s %s with a name, found %s %q", o.file, want.GroupVersion(), want.Kind, found.GroupVersionKind(), found.Name)
	}
	if problems := catalog.Check(&found.Spec).Problems; len(problems) > 0 {
		return nil, fmt.Errorf("%s: %w", o.file, problems[0])
	}
	given := &v1alpha1.InstanceTypeCatalog{TypeMeta: found.TypeMeta, Spec: found.Spec}
	given.Name, given.Labels, given.Annotations = found.Name, found.Labels, found.Annotations
	return given, nil
}

func readFile(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

// current returns the catalog of the cluster; nil if there is none.
func current(ctx context.Context, c client.Client, name string) (*v1alpha1.InstanceTypeCatalog, error) {
	found := &v1alpha1.InstanceTypeCatalog{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	lo.Must0(v1alpha1.AddToScheme(s))
	return s
}

// sameContent reports whether two catalogs have the same content.
func sameContent(a, b *v1alpha1.InstanceTypeCatalog) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Annotations, b.Annotations)
}
