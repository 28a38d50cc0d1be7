// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// markOffering marks the offering of a claim as unavailable whose Node has not joined, so that the next claim gets another one.
// Afterwards Delete marks the Machine, which counts as leaving then, so a claim causes one mark. After a crash in between, the
// offering is marked already. It returns a conflict if the template has changed: other offerings can fail at the same time.
func (c *CloudProvider) markOffering(ctx context.Context, claim *karpv1.NodeClaim, failed failure.Failure) error {
	if failed == (failure.Failure{}) || claim.Spec.NodeClassRef == nil {
		return nil
	}
	template, err := c.clusters.Template(ctx, claim.Spec.NodeClassRef.Name)
	offering, now := catalog.KeyOf(claim), c.clock.Now()
	if err != nil || template == nil || c.catalog.IsMarked(template, offering, now) {
		return err // nothing is launched with a template that does not exist
	}
	_, err = c.catalog.Mark(ctx, template, now, offering.Unavailable(string(failed.Kind), failed.Message))
	if requeue.IsChanged(err) {
		return client.IgnoreNotFound(err)
	}
	c.recorder.Publish(
		unjoined(template, string(template.UID), offering, failed, "Offering %s is unavailable for some minutes: %s"),
		unjoined(claim, string(claim.UID), offering, failed, "Offering %s is unavailable for some minutes, so that Karpenter chooses another: %s"),
	)
	if err != nil {
		log.FromContext(ctx).Error(err, "marking an offering as unavailable, which this process remembers instead", "KarpenterMachineTemplate", template.Name)
	}
	return nil
}

// unjoined reports on a claim or a template that no Node has joined.
func unjoined(object runtime.Object, uid string, offering catalog.Key, failed failure.Failure, format string) events.Event {
	return events.Event{
		InvolvedObject: object,
		Type:           corev1.EventTypeWarning,
		Reason:         string(failed.Kind),
		Message:        fmt.Sprintf(format, offering, failed.Message),
		DedupeValues:   []string{uid, offering.String()},
	}
}

// noEvents is the recorder of a CloudProvider that publishes none.
type noEvents struct{}

// Publish implements events.Recorder.
func (noEvents) Publish(...events.Event) {}
