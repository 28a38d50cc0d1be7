// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/rollout"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// rolloutOwner is the field manager of what the commands of rollout set.
const rolloutOwner = "karpenter-capi-rollout"

// rolloutState is what rollout status prints for programs.
type rolloutState struct {
	Template string                  `json:"template"`
	Reason   string                  `json:"reason"`
	Message  string                  `json:"message,omitempty"`
	Outdated string                  `json:"outdated,omitempty"`
	Rollout  *v1alpha1.RolloutStatus `json:"rollout,omitempty"`
}

func newRollout(from source, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "rollout",
		Short: "Show, pause, resume or undo the replacement of outdated Nodes of a template",
		Example: "  kubectl karpenter-capi rollout status general\n" +
			"  kubectl karpenter-capi rollout pause general\n" +
			"  kubectl karpenter-capi rollout resume general\n" +
			"  kubectl karpenter-capi rollout undo general",
	}
	command.AddCommand(
		newRolloutStatus(from, streams),
		newRolloutChange(from, streams, "pause", "Replace no further outdated Node", pause),
		newRolloutChange(from, streams, "resume", "Continue after a pause, or begin again after the rollout has stopped", func(t *v1alpha1.KarpenterMachineTemplate) (string, error) {
			return resume(t, from.now())
		}),
		newRolloutChange(from, streams, "undo", "Set the template back to what its Nodes ran before the last change", undo),
	)
	return command
}

func newRolloutStatus(from source, streams genericiooptions.IOStreams) *cobra.Command {
	var r *reader
	command := &cobra.Command{
		Use:     "status TEMPLATE",
		Short:   "Show how far the rollout of a template is",
		Example: "  kubectl karpenter-capi rollout status general",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := r.checkFormat(); err != nil {
				return err
			}
			_, template, err := readTemplate(command.Context(), r, args[0])
			if err != nil {
				return err
			}
			conditions := template.StatusConditions()
			progressing := conditions.Get(v1alpha1.ConditionRolloutProgressing)
			if progressing == nil {
				return fmt.Errorf("the rollout of KarpenterMachineTemplate %s has not begun, because the operator has not examined the template", template.Name)
			}
			state := rolloutState{Template: template.Name, Reason: progressing.Reason, Message: progressing.Message, Rollout: template.Status.Rollout}
			if current := conditions.Get(v1alpha1.ConditionNodesCurrent); current.IsFalse() {
				state.Outdated = current.Message
			}
			return r.print(r.streams.Out, state, func(out io.Writer) error { return printRollout(out, state, r.now()) })
		},
	}
	r = newReader(from, streams, command)
	return command
}

func printRollout(out io.Writer, state rolloutState, now time.Time) error {
	step, since, canary := "–", "–", "–"
	if s := state.Rollout; s != nil {
		step, since = string(s.Step), age(now, s.LastTransitionTime.Time)
		names := lo.Map(s.Canary, func(c v1alpha1.RolloutNodeClaim, _ int) string { return c.Name })
		canary = lo.CoalesceOrEmpty(shorten(strings.Join(names, ",")), canary)
	}
	if err := table(out, []string{"TEMPLATE", "STEP", "SINCE", "REASON", "CANARY"}, [][]string{{state.Template, step, since, state.Reason, canary}}); err != nil {
		return err
	}
	w := &errWriter{out: out}
	for _, message := range lo.Compact([]string{state.Message, state.Outdated}) {
		w.printf("\n%s.\n", message)
	}
	return w.err
}

// newRolloutChange returns a command that changes a template, and prints what it has done.
func newRolloutChange(from source, streams genericiooptions.IOStreams, name, short string, change func(*v1alpha1.KarpenterMachineTemplate) (string, error)) *cobra.Command {
	r := &reader{source: from, streams: streams, options: view.NewOptions()}
	command := &cobra.Command{
		Use:     name + " TEMPLATE",
		Short:   short,
		Example: "  kubectl karpenter-capi rollout " + name + " general",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			c, template, err := readTemplate(command.Context(), r, args[0])
			if err != nil {
				return err
			}
			stored := template.DeepCopy()
			done, err := change(template)
			if err != nil {
				return fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
			}
			// The lock refuses what was decided by another state of the template.
			patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
			if err := c.Patch(command.Context(), template, patch, client.FieldOwner(rolloutOwner)); err != nil {
				return fmt.Errorf("changing KarpenterMachineTemplate %s: %w", template.Name, err)
			}
			_, err = fmt.Fprintf(streams.Out, "karpentermachinetemplate/%s %s\n", template.Name, done)
			return err
		},
	}
	r.options.AddFlags(command.Flags())
	return command
}

// readTemplate returns a template with spec.rollout, and a client for its cluster.
func readTemplate(ctx context.Context, r *reader, name string) (client.Client, *v1alpha1.KarpenterMachineTemplate, error) {
	c, err := r.workload(r.options)
	if err != nil {
		return nil, nil, err
	}
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, template); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, fmt.Errorf("KarpenterMachineTemplate %s does not exist", name)
		}
		return nil, nil, err
	}
	if template.Spec.Rollout == nil {
		return nil, nil, fmt.Errorf("KarpenterMachineTemplate %s has no spec.rollout: Karpenter replaces its outdated Nodes within the disruption budgets", name)
	}
	return c, template, nil
}

func pause(template *v1alpha1.KarpenterMachineTemplate) (string, error) {
	template.Spec.Rollout.Paused = new(true)
	return "paused", nil
}

// resume ends a pause. If the rollout has stopped, it begins again. The time is after that of the stop, also if the clocks of
// the user and of the operator differ.
func resume(template *v1alpha1.KarpenterMachineTemplate, now time.Time) (string, error) {
	template.Spec.Rollout.Paused = nil
	if s := template.Status.Rollout; s != nil && s.Step == v1alpha1.RolloutStopped {
		at := lo.Latest(now, s.LastTransitionTime.Add(time.Second))
		template.Annotations = lo.Assign(template.Annotations, map[string]string{v1alpha1.RolloutResumedAtAnnotation: timestamp.Format(at)})
	}
	return "resumed", nil
}

func undo(template *v1alpha1.KarpenterMachineTemplate) (string, error) {
	if lo.FromPtr(template.Spec.Rollout.Paused) {
		return "", fmt.Errorf("its rollout is paused: resume it first with \"kubectl karpenter-capi rollout resume %s\"", template.Name)
	}
	if err := rollout.Undo(template); err != nil {
		return "", err
	}
	return "rolled back: if another tool applies the template, undo the change there, too", nil
}
