// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"errors"
	"sync"

	"github.com/awslabs/operatorpkg/status"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/rollout"
	"github.com/karpenter-capi/karpenter-capi/internal/version"
)

// Template answers for the claims of one template in its present state. It computes once what is
// generated for an offering. Several goroutines can use it at once.
type Template struct {
	catalog  *catalog.Catalog
	template *v1alpha1.KarpenterMachineTemplate

	mu       sync.Mutex
	launcher *generate.Launcher
	launches map[catalog.Key]launch
	revision string
}

// launch is the result of generate.LaunchOf.
type launch struct {
	*generate.Launch
	err error
}

// Of returns the answers for a template. It returns false if nothing can be decided now: the template
// is not Ready in its present generation, as while it is being deleted, what it follows cannot be used or was not
// examined, or Cluster API creates no Machines, because it is blocked or the control plane is being upgraded. In
// these cases, no claim drifts.
func Of(ctx context.Context, clusters *clients.Clusters, known *catalog.Catalog, template *v1alpha1.KarpenterMachineTemplate) (*Template, bool, error) {
	conditions := template.StatusConditions()
	ready := conditions.Get(status.ConditionReady)
	if !ready.IsTrue() || ready.ObservedGeneration != template.Generation ||
		conditions.Get(v1alpha1.ConditionMachinesProgressing).IsFalse() || !known.Examined(template) {
		return nil, false, nil
	}
	controlPlane, followed, err := version.Read(ctx, clusters, template)
	if err != nil || version.Changing(template, controlPlane, followed) != "" {
		return nil, false, err
	}
	return &Template{catalog: known, template: template, launcher: generate.NewLauncher(ctx, clusters, known, template), launches: map[catalog.Key]launch{}}, true, nil
}

// Reason returns why a claim of the template is outdated; empty if it is not, or that is unknown. A
// claim is never outdated before its Node is registered, nor if nothing else can be launched in
// place of its Machine with the same offering.
func (t *Template) Reason(ctx context.Context, claim *karpv1.NodeClaim) (cloudprovider.DriftReason, error) {
	if !CanDrift(claim) {
		return "", nil
	}
	key := catalog.KeyOf(claim)
	present, err := t.LaunchOf(ctx, key)
	switch {
	case catalog.IsNotOffered(err):
		return t.removed(ctx)
	case errors.As(err, &generate.UnlaunchableError{}), catalog.IsUndiscovered(err):
		return "", nil
	case err != nil:
		return "", err
	}
	hashes := generate.ParseHashes(claim.Annotations[v1alpha1.MachineHashesAnnotation])
	if present.Generated == nil || present.Version.Problem != "" || !t.catalog.Accepted(t.template, key) {
		return "", nil
	}
	if present.Version.Name == "" && hashes.Version != "" {
		return "", nil // the version is unknown, as while the control plane cannot be read, and patches can use it
	}
	return Compare(hashes, present.Generated.Hashes), nil
}

// MayReplace reports whether an outdated claim may be replaced now, see package rollout.
func (t *Template) MayReplace(ctx context.Context, claim *karpv1.NodeClaim) (bool, error) {
	if t.template.Spec.Rollout == nil {
		return true, nil
	}
	revision, err := t.Revision(ctx)
	return err == nil && rollout.MayReplace(t.template, revision, claim.UID), err
}

// Revision returns what identifies all that the template generates now, see generate.Launcher.
func (t *Template) Revision(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	if t.revision == "" {
		t.revision, err = t.launcher.Revision(ctx)
	}
	return t.revision, err
}

// CanDrift reports whether a claim of a template of this operator can be outdated: its Node is registered,
// and it is not being deleted. It can be given claims that are shared with the cache.
func CanDrift(claim *karpv1.NodeClaim) bool {
	return clients.IsTemplate(claim.Spec.NodeClassRef) && claim.DeletionTimestamp.IsZero() && claim.Annotations[v1alpha1.ScalableResourceAnnotation] != "" &&
		nodeclaims.IsRegistered(claim)
}

// LaunchOf returns what a claim with an offering would get now, see generate.Launcher.
func (t *Template) LaunchOf(ctx context.Context, key catalog.Key) (*generate.Launch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, found := t.launches[key]
	if !found {
		known.Launch, known.err = t.launcher.Of(ctx, key)
		t.launches[key] = known
	}
	return known.Launch, known.err
}

// removed returns the reason for a claim whose offering the template does not have. While the template
// or its discovery has a mistake, it is unknown whether the offering was removed.
func (t *Template) removed(ctx context.Context) (cloudprovider.DriftReason, error) {
	_, problems, err := t.catalog.Types(ctx, t.template)
	if err != nil || len(problems) > 0 {
		return "", err
	}
	return v1alpha1.DriftOfferingRemoved, nil
}
