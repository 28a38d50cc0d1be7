// SPDX-License-Identifier: Apache-2.0

package nodeclaims_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// newClaim returns a launched claim with the provider ID of a Machine, and with a remediation request.
func newClaim() *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c", Finalizers: []string{karpv1.TerminationFinalizer}}}
	claim.Annotations = map[string]string{v1alpha1.RemediationAnnotation: "TestRemediation.example.com/m/1"}
	claim.Status.ProviderID = "real://m"
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	return claim
}

func clientOf(claims ...client.Object) client.WithWatch {
	return fixture.WithUIDs(fixture.WithJSONPatch(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claims...).WithStatusSubresource(&karpv1.NodeClaim{}).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).Build()))
}

func read(t *testing.T, c client.Client) *karpv1.NodeClaim {
	t.Helper()
	claim := &karpv1.NodeClaim{}
	if err := c.Get(t.Context(), types.NamespacedName{Name: "c"}, claim); err != nil {
		t.Fatal(err)
	}
	return claim
}

// writes are all writes but Delete.
var writes = map[string]func(context.Context, client.Client, *karpv1.NodeClaim) error{
	"Stall": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		written, err := nodeclaims.Stall(ctx, c, claim, v1alpha1.ReasonBlocked, "x")
		if written != (err == nil) {
			return errors.New("it does not report whether it has written")
		}
		return err
	},
	"Resume": nodeclaims.Resume,
	"Reject": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		return nodeclaims.Reject(ctx, c, claim, errors.New("x"))
	},
	"Fail": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		return nodeclaims.Fail(ctx, c, claim, "MachineFailed", "x")
	},
	"SetProviderID": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		written, err := nodeclaims.SetProviderID(ctx, c, claim, "next", "real://next")
		if written != (err == nil) {
			return errors.New("it does not report whether it has written")
		}
		return err
	},
	"Wait": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		return nodeclaims.Wait(ctx, c, claim, v1alpha1.ReasonWaitingForNode, "x")
	},
	"Ready": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		return nodeclaims.Ready(ctx, c, claim, "m")
	},
	"ResetProviderID": nodeclaims.ResetProviderID,
	"ReportProviderID": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		_, err := nodeclaims.ReportProviderID(ctx, c, claim, "x")
		return err
	},
	"Move": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		return nodeclaims.Move(ctx, c, claim, map[string]string{v1alpha1.ScalableResourceAnnotation: "x"})
	},
	"Restore": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		return nodeclaims.Restore(ctx, c, claim, map[string]string{v1alpha1.ScalableResourceAnnotation: "x"})
	},
	"NoteRemediation": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		return nodeclaims.NoteRemediation(ctx, c, claim, "x")
	},
	"EndRemediation": nodeclaims.EndRemediation,
	"RenewHashes": func(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
		return nodeclaims.RenewHashes(ctx, c, claim, map[string]string{v1alpha1.MachineHashesAnnotation: "x"})
	},
}

// A claim that has changed since it was read, or no longer exists, is not written.
func TestWritesOnlyToWhatWasRead(t *testing.T) {
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			c := clientOf(newClaim())
			claim := read(t, c)
			written := claim.DeepCopy()
			if err := write(t.Context(), c, written); err != nil {
				t.Errorf("as it was read: %v", err)
			}
			after := read(t, c)
			if after.ResourceVersion == claim.ResourceVersion {
				t.Error("nothing is written")
			}
			if written.ResourceVersion != after.ResourceVersion {
				t.Error("the claim is not as the API server has it")
			}
			if err := write(t.Context(), clientOf(after), claim); !apierrors.IsConflict(err) {
				t.Errorf("it has changed: got %v, want a conflict", err)
			}
			if diff := cmp.Diff(after, read(t, c)); diff != "" {
				t.Errorf("it has changed (-before +after):\n%s", diff)
			}
			if err := write(t.Context(), clientOf(), claim); !apierrors.IsNotFound(err) || !precondition.IsGone(err) {
				t.Errorf("it no longer exists: got %v", err)
			}
		})
	}
}

// A registered claim keeps its provider ID.
func TestResetNoRegisteredID(t *testing.T) {
	claim := newClaim()
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	c := clientOf(claim)
	if err := nodeclaims.ResetProviderID(t.Context(), c, read(t, c)); err == nil || read(t, c).Status.ProviderID != "real://m" {
		t.Errorf("got %v and ID %s", err, read(t, c).Status.ProviderID)
	}
}

// Only the first reason is written on a claim: launchTimeoutSeconds counts from then on.
func TestAClaimIsRejectedOnce(t *testing.T) {
	c := clientOf(newClaim())
	for _, reason := range []string{"first", "second"} {
		if err := nodeclaims.Reject(t.Context(), c, read(t, c), errors.New(reason)); err != nil {
			t.Fatal(err)
		}
	}
	if got := nodeclaims.ConditionOf(read(t, c), v1alpha1.ConditionMachineAvailable); got == nil || got.Message != "first" {
		t.Errorf("got condition %+v, want the first reason", got)
	}
}

// A claim that was created again with the name of the one that the decision is about is not deleted.
func TestDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		uid     types.UID // of the claim in the API server
		deleted bool
	}{
		"the same claim":            {uid: "c", deleted: true},
		"another one with its name": {uid: "again"},
	} {
		t.Run(name, func(t *testing.T) {
			stored := newClaim()
			stored.UID = tc.uid
			c := clientOf(stored)
			if err := nodeclaims.Delete(t.Context(), c, newClaim(), "its Node was removed"); err != nil {
				t.Fatal(err)
			}
			if deleted := !read(t, c).DeletionTimestamp.IsZero(); deleted != tc.deleted {
				t.Errorf("the claim is being deleted: %t, want %t", deleted, tc.deleted)
			}
		})
	}
	if err := nodeclaims.Delete(t.Context(), clientOf(), newClaim(), "its Node was removed"); err != nil {
		t.Errorf("it no longer exists: %v", err)
	}
}
