// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/migrate"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// migrateOwner is the field manager of the objects that migrate applies.
const migrateOwner = "karpenter-capi-migrate"

func newMigrate(from source, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Plan the migration from another autoscaler",
		Long: "Print the templates and NodePools that adopt the MachineDeployments of another autoscaler, with the order of steps and the\n" +
			"way back. Nothing is written without --apply, no Node is removed, and nothing is deleted.",
		Example: "  kubectl karpenter-capi migrate cluster-autoscaler\n  kubectl karpenter-capi migrate pkca",
	}
	command.AddCommand(
		newMigration(from, streams, "cluster-autoscaler", "name", "adopted", "beginning of the names of templates and NodePools", &cobra.Command{
			Short: "Plan the migration from cluster-autoscaler with its Cluster API provider",
			Long:  "Plan the migration of the MachineDeployments with cluster-autoscaler's annotations for the minimum and maximum size.",
		}, migrate.ClusterAutoscaler),
		newMigration(from, streams, "pkca", "suffix", "-capi", "end of the names of NodePools", &cobra.Command{
			Short: "Plan the migration from karpenter-provider-cluster-api",
			Long:  "Plan the migration of ClusterAPINodeClasses, their NodePools, and the MachineDeployments that they select.",
		}, migrate.OtherProvider),
	)
	return command
}

// newMigration completes the command for one autoscaler, whose plan depends on the value of a flag.
func newMigration(from source, streams genericiooptions.IOStreams, use, flag, value, usage string, command *cobra.Command, plan func(*migrate.Found, string) (*migrate.Plan, error)) *cobra.Command {
	var r *reader
	apply := false
	command.Use, command.Args = use, cobra.NoArgs
	command.Example = fmt.Sprintf("  kubectl karpenter-capi migrate %[1]s\n  kubectl karpenter-capi migrate %[1]s --apply", use)
	command.RunE = func(command *cobra.Command, _ []string) error {
		clusters, err := r.open(command.Context())
		if err != nil {
			return err
		}
		found, err := migrate.Read(command.Context(), clusters)
		if err != nil {
			return err
		}
		planned, err := plan(found, value)
		if err != nil {
			return err
		}
		content, err := planned.Print()
		if err != nil {
			return err
		}
		if _, err := streams.Out.Write(content); err != nil || !apply {
			return err
		}
		return applyAll(command.Context(), clusters.Workload.GetClient(), streams, planned.Objects)
	}
	r = &reader{source: from, streams: streams, options: view.NewOptions()}
	r.options.AddFlags(command.Flags())
	command.Flags().BoolVar(&apply, "apply", false, "apply the objects to the workload cluster, server-side")
	command.Flags().StringVar(&value, flag, value, usage)
	return command
}

// applyAll applies objects, and says so for each.
func applyAll(ctx context.Context, c client.Client, streams genericiooptions.IOStreams, objects []client.Object) error {
	for _, given := range objects {
		object, err := migrate.Written(given)
		if err != nil {
			return err
		}
		name := object.GetKind() + " " + object.GetName()
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(migrateOwner))
		if apierrors.IsConflict(err) {
			return fmt.Errorf("%s exists, and another field manager has set fields of it: choose other names: %w", name, err)
		}
		if err != nil {
			return fmt.Errorf("applying %s: %w", name, err)
		}
		if _, err := fmt.Fprintf(streams.ErrOut, "%s applied\n", name); err != nil {
			return err
		}
	}
	return nil
}
