// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

const (
	// askers is the number of concurrent dry runs.
	askers = 10
	// askAgainAfter is for how long a rejection is not tried again. Webhooks and roles can change
	// it, which no event shows.
	askAgainAfter = 5 * time.Minute
	// askTimeout limits the dry runs of one template, because the rest of its status must be
	// written, too. They continue after askAgainSoon.
	askTimeout   = 40 * time.Second
	askAgainSoon = 10 * time.Second
)

// Examiner reports which offerings of templates can be created, before any NodeClaim depends on it.
type Examiner struct {
	clusters *clients.Clusters
	catalog  *catalog.Catalog
	clock    clock.PassiveClock
	// examined has the latest examination of each template.
	examined sync.Map
}

// NewExaminer returns the examiner for the served Cluster. The catalog offers what it accepts.
func NewExaminer(clusters *clients.Clusters, catalog *catalog.Catalog, clock clock.PassiveClock) *Examiner {
	return &Examiner{clusters: clusters, catalog: catalog, clock: clock}
}

// Forget drops what is known of a template that no longer exists.
func (e *Examiner) Forget(template string) { e.examined.Delete(template) }

// answer is the result of the dry run of one generated object.
type answer struct {
	rejected error // nil if the API server accepts it
	at       time.Time
}

// examined is the examination of one revision of a template with its instance types.
type examined struct {
	revision string
	types    []catalog.Type
	names    names
	taken    map[catalog.Key]error
	until    time.Time // zero: for as long as the revision is the same
	result   Result
	// answers are by content. The template's status has what was accepted, too, so that a restart
	// repeats no dry run.
	answers map[string]answer
}

// Result is which offerings of a template can be created.
type Result struct {
	// accepted are the offerings that can be created, adopted ones included.
	accepted sets.Set[catalog.Key]
	// Invalid are the others, as the status shows them.
	Invalid []v1alpha1.InvalidOfferings
	// All is why no offering can be created.
	All error
	// Hash identifies what was accepted; empty if something was not.
	Hash string
}

// Examine returns which offerings cannot be created, because a patch cannot be applied or the API
// server of the management cluster rejects a dry run of the result. The result is kept until
// something changes. Examine also returns after what time to examine again.
func (e *Examiner) Examine(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, types []catalog.Type) (Result, time.Duration, error) {
	bases, err := ReadBases(ctx, e.clusters, template)
	if err != nil {
		if template.StatusConditions().IsTrue(v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady) {
			return Result{}, 0, err
		}
		// These conditions show why; what was found before stays.
		return Result{Invalid: template.Status.InvalidOfferings, Hash: template.Status.AcceptedHash}, 0, nil
	}
	revision := fmt.Sprintf("%s/%d/%s/%s/%s/%+v/%s/%s", template.UID, template.Generation, template.FromHash(), versionOf(bases.Infrastructure), versionOf(bases.Bootstrap), bases.ControlPlane, bases.Allowed.Key(), versionsOf(types, bases))
	known := examined{}
	if last, ok := e.examined.Load(template.Name); ok {
		known = last.(examined)
	}
	now := e.clock.Now()
	taken, err := known.names.taken(ctx, e.clusters, template.Name)
	if err != nil {
		return Result{}, 0, err
	}
	if known.revision != revision || !identical(known.types, types) || !sets.KeySet(taken).Equal(sets.KeySet(known.taken)) || !known.until.IsZero() && !now.Before(known.until) {
		known.revision, known.types, known.until = revision, types, time.Time{}
		known.result, err = e.examine(ctx, template, bases, &known)
		switch {
		case err != nil:
			// What was answered is kept, so that a template with very many offerings
			// gets there in several reconciles.
			log.FromContext(ctx).Error(err, "cannot send all dry runs of generated objects")
			known.result, known.until = Result{All: err}, now.Add(askAgainSoon)
		case known.result.Hash == "":
			known.until = now.Add(askAgainAfter)
		}
		e.examined.Store(template.Name, known)
	}
	if known.result.accepted != nil {
		e.catalog.SetAccepted(template, known.result.accepted)
	}
	return known.result, max(0, known.until.Sub(now)), nil
}

// identical reports whether types are the same values. The catalog returns other values when
// something has changed.
func identical(a, b []catalog.Type) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func versionOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return string(object.GetUID()) + "@" + object.GetResourceVersion()
}

// versionsOf identifies the templates that instance types themselves name.
func versionsOf(types []catalog.Type, bases Bases) string {
	var versions []string
	seen := map[clusterv1.ContractVersionedObjectReference]bool{}
	for i := range types {
		for _, offering := range types[i].Offerings {
			ref := offering.InfrastructureRef
			if ref == nil || seen[*ref] {
				continue
			}
			seen[*ref] = true
			object, _ := bases.ByRef(*ref) // the examination finds an error again
			versions = append(versions, versionOf(object))
		}
	}
	return strings.Join(versions, ",")
}

// examine generates what every offering of a template needs, and asks about what has
// not been answered before.
func (e *Examiner) examine(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, bases Bases, known *examined) (Result, error) {
	generator, err := NewGenerator(e.clusters.Cluster, template, bases)
	if err != nil {
		return Result{All: err}, nil
	}
	accepted := sets.New[catalog.Key]()
	for i := range known.types {
		for j := range known.types[i].Offerings {
			accepted.Insert(known.types[i].KeyOf(&known.types[i].Offerings[j]))
		}
	}
	asked := questionsOf(generator, known.types)
	known.names = asked.names
	if known.taken, err = asked.names.taken(ctx, e.clusters, template.Name); err != nil {
		return Result{}, err
	}
	problems := lo.Assign(asked.problems, known.taken)
	accepts := hash.Of(hash.Accepted, slices.Sorted(maps.Keys(asked.ask)))
	if len(problems) == 0 && accepts == template.Status.AcceptedHash {
		return Result{accepted: accepted, Hash: accepts}, nil
	}
	known.answers, err = e.ask(ctx, asked.ask, known.answers)
	if err != nil {
		return Result{}, err
	}
	// In order, so that an offering with several problems always shows the same.
	for _, content := range slices.Sorted(maps.Keys(known.answers)) {
		if rejected := known.answers[content].rejected; rejected != nil {
			for _, offering := range asked.ask[content].offerings {
				if problems[offering] == nil {
					problems[offering] = rejected
				}
			}
		}
	}
	return summarize(asked.offerings, problems, accepted.Difference(sets.KeySet(problems)), accepts), nil
}

// rejectedError is the error of an object that the API server rejects, and unansweredError that of
// dry runs without an answer.
type (
	rejectedError   struct{ error }
	unansweredError struct{ error }
)

// ReasonOf returns the reason of a condition for why an offering cannot be created.
func ReasonOf(problem error) string {
	if refused := (tenancy.NotAllowed{}); errors.As(problem, &refused) {
		return refused.Reason
	}
	if apierrors.IsNotFound(problem) {
		return v1alpha1.ReasonReferenceNotFound
	}
	if errors.As(problem, &reference.Unlisted{}) {
		return v1alpha1.ReasonObjectsNotReadable
	}
	if errors.As(problem, &nameTakenError{}) {
		return v1alpha1.ReasonNameTaken
	}
	if errors.As(problem, &rejectedError{}) || errors.As(problem, &unansweredError{}) {
		return v1alpha1.ReasonTemplatesRejected
	}
	return v1alpha1.ReasonPatchesFailed
}

// ask sends dry runs of generated objects, given by content, unless an earlier answer is still valid.
// It returns an error if some were not answered, together with the answers of the others.
func (e *Examiner) ask(ctx context.Context, questions map[string]*question, before map[string]answer) (map[string]answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	contents := slices.Sorted(maps.Keys(questions))
	answers, errs := make([]answer, len(contents)), make([]error, len(contents))
	workqueue.ParallelizeUntil(ctx, askers, len(contents), func(i int) {
		known, answered := before[contents[i]]
		if answered && (known.rejected == nil || e.clock.Since(known.at) < askAgainAfter) {
			answers[i] = known
			return
		}
		rejected, err := e.dryRun(ctx, questions[contents[i]].object)
		if errs[i] = err; err == nil {
			answers[i] = answer{rejected: rejected, at: e.clock.Now()}
		}
	})
	said := map[string]answer{}
	for i, answer := range answers {
		if !answer.at.IsZero() {
			said[contents[i]] = answer
		}
	}
	if errs = lo.Compact(append(errs, ctx.Err())); len(errs) > 0 {
		return said, unansweredError{fmt.Errorf("the management cluster did not answer dry runs of %d of %d generated objects: %w", len(contents)-len(said), len(contents), errs[0])}
	}
	return said, nil
}

// dryRun sends a dry run of the creation of an object. It returns why the API server rejects it, or an
// error if the API server did not answer.
func (e *Examiner) dryRun(ctx context.Context, object client.Object) (rejected, err error) {
	_, err = scalable.Create(ctx, e.clusters, object.DeepCopyObject().(client.Object), client.DryRunAll, client.FieldValidation("Strict"))
	switch {
	case err == nil:
		return nil, nil
	case apierrors.IsAlreadyExists(err):
		return nameTakenError{err}, nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		said := apierrors.APIStatus(nil)
		errors.As(err, &said)
		kind, _ := apiutil.GVKForObject(object, e.clusters.Management.GetClient().Scheme()) // Create has determined it, too
		// Without the name, because users do not know it, and each content has another.
		return rejectedError{fmt.Errorf("the management cluster rejects %s: %s", kind.Kind, strings.ReplaceAll(said.Status().Message, fmt.Sprintf(" %q", object.GetName()), ""))}, nil
	default:
		return nil, fmt.Errorf("dry run: %w", err)
	}
}
