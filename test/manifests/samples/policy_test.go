// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The policy of the sample lets through what the sample of AWS generates, and refuses machines with more power. It looks
// only at what the operator generates.
func TestAdmissionPolicy(t *testing.T) {
	createAll(t, "admission-policy")
	const profile = "nodes.cluster-api-provider-aws.sigs.k8s.io"
	attempt := func(generated bool, machine map[string]any) error {
		machine["instanceType"] = "m6i.large"
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": machine}}}}
		object.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
		object.SetKind("AWSMachineTemplate")
		object.SetNamespace("default")
		object.SetGenerateName("policy-")
		if generated {
			object.SetLabels(map[string]string{v1alpha1.TemplateLabel: "general"})
		}
		return apiServer.Create(t.Context(), object, client.DryRunAll)
	}
	// The API server needs a moment until a new policy is in effect.
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return apierrors.IsInvalid(attempt(true, map[string]any{"iamInstanceProfile": "admin"})), nil
	}); err != nil {
		t.Fatalf("the policy is not in effect: %v", err)
	}
	for name, tc := range map[string]struct {
		generated bool
		machine   map[string]any
		want      string // a part of the message; empty if it is let through
	}{
		"a worker":             {true, map[string]any{"iamInstanceProfile": profile}, ""},
		"another profile":      {true, map[string]any{"iamInstanceProfile": "admin"}, "set it in the base template"},
		"no profile":           {true, map[string]any{}, "set it in the base template"},
		"a security group":     {true, map[string]any{"iamInstanceProfile": profile, "additionalSecurityGroups": []any{map[string]any{"id": "sg-1"}}}, "remove additionalSecurityGroups"},
		"a network interface":  {true, map[string]any{"iamInstanceProfile": profile, "networkInterfaces": []any{"eni-1"}}, "remove additionalSecurityGroups and networkInterfaces"},
		"a public address":     {true, map[string]any{"iamInstanceProfile": profile, "publicIP": true}, "remove publicIP"},
		"a template of a user": {false, map[string]any{"iamInstanceProfile": "admin", "publicIP": true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := attempt(tc.generated, tc.machine)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
