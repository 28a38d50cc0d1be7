// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The annotation of a claim has all of a request, also if the ID of the restart has slashes. What else a user writes there is
// no request.
func TestRequestOf(t *testing.T) {
	request := Request{Kind: schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "Metal3Remediation"}, Name: "workers-abc12", Operation: "1-2/3-x"}
	for text, want := range map[string]*Request{
		request.String(): &request,
		"":               nil,
		"x":              nil,
		"Metal3Remediation.infrastructure.cluster.x-k8s.io/workers": nil,
		"//": nil,
	} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.RemediationAnnotation: text}}}
		got, named := RequestOf(claim)
		if named != (want != nil) || named && got != *want {
			t.Errorf("%q: got %+v and %t, want %+v", text, got, named, want)
		}
	}
}

// A restart creates one request, and waits until that of an earlier restart no longer exists. The request of another creator
// restarts the machine as well.
func TestNext(t *testing.T) {
	request := func(operation string, deleted bool) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		if operation != "" {
			object.SetAnnotations(map[string]string{v1alpha1.RemediationOperationAnnotation: operation})
		}
		if deleted {
			object.SetDeletionTimestamp(new(metav1.Now()))
		}
		return object
	}
	for name, tc := range map[string]struct {
		existing *unstructured.Unstructured
		want     step
	}{
		"there is none":                       {want: create},
		"of this restart":                     {existing: request("now", false), want: done},
		"of this restart, and a user ends it": {existing: request("now", true), want: wait},
		"of an earlier restart":               {existing: request("before", false), want: remove},
		"of an earlier restart, that ends":    {existing: request("before", true), want: wait},
		"of a MachineHealthCheck":             {existing: request("", false), want: done},
		"of a MachineHealthCheck, that ends":  {existing: request("", true), want: wait},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(tc.existing, "now"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A request is needed while core restarts the Node of its claim.
func TestNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		status  metav1.ConditionStatus
		reason  string
		deleted bool
		want    bool
	}{
		"no restart":                       {},
		"the Node is drained":              {status: metav1.ConditionTrue, reason: karpv1.RebootReasonRequested, want: true},
		"the machine restarts":             {status: metav1.ConditionTrue, reason: karpv1.RebootReasonIssued, want: true},
		"the machine has restarted":        {status: metav1.ConditionFalse, reason: karpv1.RebootReasonSucceeded},
		"the restart was invalid":          {status: metav1.ConditionFalse, reason: karpv1.RebootReasonFailed},
		"the claim ends while it restarts": {status: metav1.ConditionTrue, reason: karpv1.RebootReasonIssued, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &karpv1.NodeClaim{}
			switch tc.status {
			case metav1.ConditionTrue:
				claim.StatusConditions().SetTrueWithReason(karpv1.ConditionTypeRebooting, tc.reason, "x")
			case metav1.ConditionFalse:
				claim.StatusConditions().SetFalse(karpv1.ConditionTypeRebooting, tc.reason, "x")
			}
			if tc.deleted {
				claim.DeletionTimestamp = new(metav1.Now())
			}
			if got := Needed(claim); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
