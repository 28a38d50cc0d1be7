// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	webhooks "sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// validateResource is what Cluster API's own webhooks answer to the creation of a scalable resource.
func validateResource(t *testing.T) func(client.Object) error {
	return func(object client.Object) error {
		var err error
		switch resource := object.(type) {
		case *clusterv1.MachineDeployment:
			_, err = (&webhooks.MachineDeployment{}).ValidateCreate(t.Context(), resource)
		case *clusterv1.MachinePool:
			_, err = (&webhooks.MachinePool{}).ValidateCreate(t.Context(), resource)
		default:
			t.Errorf("a dry run of %T", object)
		}
		return err
	}
}

// What only Cluster API's webhooks reject makes the template not Ready, with their words. One scalable resource
// shows it for all offerings. What was accepted is not asked about again.
func TestScalableResourcesAreAskedAbout(t *testing.T) {
	if err := feature.MutableGates.Set("MachinePool=true"); err != nil {
		t.Fatal(err)
	}
	type edit = func(*v1alpha1.MachineTemplate)
	for name, tc := range map[string]struct {
		edit edit
		want string // empty if it is accepted
	}{
		"nothing":               {edit: func(*v1alpha1.MachineTemplate) {}},
		"a label":               {edit: func(m *v1alpha1.MachineTemplate) { m.Metadata.Labels = map[string]v1alpha1.LabelValue{"team": "x"} }},
		"an invalid label":      {edit: func(m *v1alpha1.MachineTemplate) { m.Metadata.Labels = map[string]v1alpha1.LabelValue{"my team": "x"} }, want: "spec.template.metadata.labels"},
		"an invalid annotation": {edit: func(m *v1alpha1.MachineTemplate) { m.Metadata.Annotations = map[string]string{"my note": "x"} }, want: "spec.template.metadata.annotations"},
		"an invalid version":    {edit: func(m *v1alpha1.MachineTemplate) { m.Spec.Version = "v1" }, want: "must be a valid semantic version"},
	} {
		for _, kind := range []v1alpha1.ScalableResourceKind{v1alpha1.ScalableResourceKindMachineDeployment, v1alpha1.ScalableResourceKindMachinePool} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				a := newAsking()
				a.validate = validateResource(t)
				a.template.Spec.ScalableResource.Kind = kind
				a.template.Spec.Template.Spec.Bootstrap.DataSecretName = new("bootstrap")
				tc.edit(&a.template.Spec.Template)
				if kind == v1alpha1.ScalableResourceKindMachinePool {
					a.template.Spec.Patches = nil // each pool has objects of its own
				}
				got, answers, err := a.examine(t, nil)
				if err != nil {
					t.Fatal(err)
				}
				if len(a.resources) != 1 {
					t.Errorf("asked about %d scalable resources, want one for all offerings", len(a.resources))
				}
				if tc.want == "" {
					if got.All != nil || got.Hash == "" || got.accepted.Len() != 3 {
						t.Fatalf("got %+v, want that all is accepted", got)
					}
					a.template.Status.AcceptedHash = got.Hash
					if _, _, err := a.examine(t, nil); err != nil || len(a.resources)+len(a.asked) > 0 {
						t.Errorf("got %v and dry runs of %v and %v after a restart, want none", err, a.resources, a.asked)
					}
					return
				}
				if got.All == nil || ReasonOf(got.All) != v1alpha1.ReasonTemplatesRejected || !strings.Contains(got.All.Error(), "the management cluster rejects "+string(kind)+": ") || !strings.Contains(got.All.Error(), tc.want) || strings.Contains(got.All.Error(), a.resources[0].GetName()) {
					t.Fatalf("got %v, want what the webhook says, without a name", got.All)
				}
				a.clock.Step(askAgainAfter - time.Second)
				if _, answers, err = a.examine(t, answers); err != nil || len(a.resources) != 0 {
					t.Errorf("got %v and a dry run of %v, want none: a rejection is not tried again for 5 minutes", err, a.resources)
				}
				a.clock.Step(time.Second)
				if _, _, err = a.examine(t, answers); err != nil || len(a.resources) != 1 {
					t.Errorf("got %v and dry runs of %v, want one after 5 minutes", err, a.resources)
				}
			})
		}
	}
}
