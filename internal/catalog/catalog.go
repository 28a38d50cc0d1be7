// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/inventory"
)

// Catalog keeps the instance types of each template. Several goroutines can use it at
// once. Everything in it can be computed again from the caches, except for marks that
// could not be written: see Remember.
type Catalog struct {
	clusters *clients.Clusters
	// inventory has what capacityFrom of offerings counts; nil if nothing is counted.
	inventory *inventory.Watches

	mu      sync.Mutex
	entries map[string]*entry
	reads   singleflight.Group
}

// New returns an empty Catalog for the served Cluster.
func New(clusters *clients.Clusters) *Catalog {
	return &Catalog{clusters: clusters, entries: map[string]*entry{}}
}

// InstanceTypes returns the instance types of a template. Offerings that cannot be chosen
// now are not available, nor are those that only NodeClaims still have. It returns the
// same values until something changes; callers must not modify them.
//
// Conditions of the template report the instance types that are invalid; this returns the
// others. While discovery is incomplete, it returns what is known. It returns an error if
// the caches could not be read.
func (c *Catalog) InstanceTypes(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, now time.Time) ([]*cloudprovider.InstanceType, error) {
	e, err := c.entry(ctx, template)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	return e.instanceTypes(template, now), nil
}

// CountAvailable returns how many offerings of a template can be chosen now. It uses the
// status of the template as it is given, even if that is not stored yet.
func (c *Catalog) CountAvailable(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, now time.Time) (int, error) {
	e, err := c.entry(ctx, template)
	if err != nil {
		return 0, err
	}
	defer e.mu.Unlock()
	return lo.SumBy(e.overlayOf(template, now).apply(e.all), func(instanceType *cloudprovider.InstanceType) int {
		return len(instanceType.Offerings.Launchable())
	}), nil
}

// InstanceTypesFor returns the instance types for a NodePool or NodeClaim. If only other
// templates give a label that it sets to Nodes, its value is the one that the NodePool or
// NodeClaim sets, and the instance types have no requirement for it. Offerings whose taints
// it does not have are not available.
func (c *Catalog) InstanceTypesFor(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, demand Demand, now time.Time) ([]*cloudprovider.InstanceType, error) {
	e, err := c.entry(ctx, template)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	instanceTypes := e.instanceTypes(template, now)
	foreign := lo.Uniq(lo.Filter(demand.Labels, func(key string, _ int) bool { return e.custom.keys.Has(key) && !e.own.Has(key) }))
	closed := e.lacking(demand)
	if len(foreign) == 0 && len(closed) == 0 {
		return instanceTypes, nil
	}
	slices.Sort(foreign)
	key := fmt.Sprint(foreign, closed)
	if _, known := e.variants[key]; !known {
		if e.variants == nil {
			e.variants = map[string][]*cloudprovider.InstanceType{}
		}
		e.variants[key] = overlay{closed: closed}.apply(without(instanceTypes, foreign))
	}
	return e.variants[key], nil
}

// lacking returns the offerings whose taints a NodePool or NodeClaim does not have.
func (e *entry) lacking(demand Demand) []Key {
	var closed []Key
	for _, key := range e.tainted {
		if t := &e.types[e.index[key.InstanceType]]; len(demand.lacks(t.Find(key.Zone, key.CapacityType))) > 0 {
			closed = append(closed, key)
		}
	}
	return closed
}

// NodeLabels returns the labels that a template's instance type gives to its Nodes, and
// the keys of all labels that the types of this template give, without the well-known
// ones. It returns false if the template has no such type, or if that is not known yet: it
// does not wait for objects that discovery needs.
func (c *Catalog) NodeLabels(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, instanceType string) (map[string]string, sets.Set[string], bool, error) {
	versions, err := c.versions(ctx, template)
	if err != nil {
		return nil, nil, false, err
	}
	e := c.lock(template)
	defer e.mu.Unlock()
	if e.isOf(template, versions) {
		at, known := e.index[instanceType]
		if !known {
			return nil, nil, false, nil
		}
		return e.types[at].Labels, e.own, true, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel() // read does not wait then
	in, err := read(ctx, c.clusters, template)
	if err != nil {
		return nil, nil, false, err
	}
	types, _ := typesOf(template, in)
	found, known := lo.Find(types, func(t Type) bool { return t.Name == instanceType })
	if !known {
		return nil, nil, false, nil
	}
	return found.Labels, ownKeys(types), true, nil
}

// Types returns the instance types that a template offers, and why it cannot offer others.
func (c *Catalog) Types(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) ([]Type, []Problem, error) {
	e, err := c.entry(ctx, template)
	if err != nil {
		return nil, nil, err
	}
	defer e.mu.Unlock()
	return e.types, e.problems, nil
}

// Known returns the instance types of a template as they were computed last; nil if they were not. Unlike Types, it reads
// nothing and waits for nothing.
func (c *Catalog) Known(name string) []Type {
	c.mu.Lock()
	e, known := c.entries[name]
	c.mu.Unlock()
	if !known {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.types
}

// Find returns one offering of a template. The error is NotOffered if the template does
// not have the offering, Undiscovered if a catalog is missing or discovery is incomplete, so that
// the template may have the offering later, and another one if the caches could not be read.
func (c *Catalog) Find(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, key Key) (*Type, *Offering, error) {
	e, err := c.entry(ctx, template)
	if err != nil {
		return nil, nil, err
	}
	defer e.mu.Unlock()
	if at, known := e.index[key.InstanceType]; known {
		if offering := e.types[at].Find(key.Zone, key.CapacityType); offering != nil {
			return &e.types[at], offering, nil
		}
	}
	if e.inputs.Incomplete {
		return nil, nil, Undiscovered{Template: template.Name, Key: key}
	}
	return nil, nil, NotOffered{Template: template.Name, Key: key}
}

// NotOffered is the error for an offering that a template does not have.
type NotOffered struct {
	Template string
	Key      Key
}

// Error names the template and the offering.
func (e NotOffered) Error() string {
	return fmt.Sprintf("KarpenterMachineTemplate %s has no offering %s", e.Template, e.Key)
}

// IsNotOffered reports whether an error is NotOffered.
func IsNotOffered(err error) bool {
	notOffered := NotOffered{}
	return errors.As(err, &notOffered)
}

// Undiscovered is the error for an offering of which it is unknown whether a template has it,
// because one of its catalogs does not exist, or objects that its discovery needs cannot be read.
type Undiscovered struct {
	Template string
	Key      Key
}

// Error names the template and the offering.
func (e Undiscovered) Error() string {
	return fmt.Sprintf("a catalog of KarpenterMachineTemplate %s does not exist or its discovery is incomplete, so that it is unknown whether it has offering %s: see its condition %s", e.Template, e.Key, v1alpha1.ConditionOfferingsValid)
}

// IsUndiscovered reports whether an error is Undiscovered.
func IsUndiscovered(err error) bool {
	undiscovered := Undiscovered{}
	return errors.As(err, &undiscovered)
}

// Limits returns how many NodeClaims a template and its offerings can have.
func (c *Catalog) Limits(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (Limits, error) {
	e, err := c.entry(ctx, template)
	if err != nil {
		return Limits{}, err
	}
	limits := e.limits
	e.mu.Unlock()
	if !limits.shared {
		return limits, nil
	}
	templates := &v1alpha1.KarpenterMachineTemplateList{}
	if err := c.clusters.Workload.GetClient().List(ctx, templates, client.UnsafeDisableDeepCopy); err != nil {
		return Limits{}, fmt.Errorf("listing KarpenterMachineTemplates: %w", err)
	}
	limits.others = make(map[string]*v1alpha1.KarpenterMachineTemplate, len(templates.Items))
	for i := range templates.Items {
		limits.others[templates.Items[i].Name] = &templates.Items[i]
	}
	return limits, c.readInventories(ctx, &limits)
}

// Refresh reads the NodeClaims of a template, its catalogs, and the objects that it discovers, again
// from the caches. It returns the kinds of infrastructure templates whose changes require
// another Refresh. If the caches cannot be read, the entry of the template stays.
func (c *Catalog) Refresh(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) ([]schema.GroupVersionKind, error) {
	// The entry is not locked while this reads, so that other goroutines can use it.
	in, err := read(ctx, c.clusters, template)
	if err != nil {
		return nil, err
	}
	e := c.lock(template)
	defer e.mu.Unlock()
	overtaken := e.uid == template.UID && e.generation > template.Generation
	used := in.Used
	in.Used = e.inputs.Used
	switch {
	case overtaken:
	case !e.isOf(template, in.Catalogs) || !equality.Semantic.DeepEqual(e.inputs, in.inputs):
		in.Used = used
		e.rebuild(template, in)
		c.inventory.Need(template.Name, e.limits.all)
	default:
		e.setUsed(template, used)
	}
	return in.sortedKinds(), nil
}

// Forget removes the entry of a template that no longer exists.
func (c *Catalog) Forget(name string) {
	c.inventory.Need(name, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, name)
}

// entry returns the entry of a template, locked. It reads the caches if the entry is not
// of the current generation, so that all types in use are known directly after a start or
// a change. It reads once for all callers that need the same entry, and the entry is not
// locked meanwhile. What could not be read then is left to Refresh.
func (c *Catalog) entry(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (*entry, error) {
	versions, err := c.versions(ctx, template)
	if err != nil {
		return nil, err
	}
	e := c.lock(template)
	if e.isOf(template, versions) {
		return e, nil
	}
	e.mu.Unlock()
	revision := fmt.Sprintf("%s/%d/%s/%v", template.UID, template.Generation, template.FromHash(), versions)
	in, err, _ := c.reads.Do(template.Name+"/"+revision, func() (any, error) {
		return read(context.WithoutCancel(ctx), c.clusters, template)
	})
	if err != nil {
		return nil, err
	}
	if e = c.lock(template); !e.isOf(template, versions) {
		e.rebuild(template, in.(*reader))
		c.inventory.Need(template.Name, e.limits.all)
	}
	return e, nil
}

// versions returns which content the catalogs of a template have now.
func (c *Catalog) versions(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) ([]catalogVersion, error) {
	catalogs, err := ReadCatalogs(ctx, c.clusters, template)
	return versionsOf(catalogs), err
}

// lock returns the entry of a template, locked: templates do not wait for each other.
func (c *Catalog) lock(template *v1alpha1.KarpenterMachineTemplate) *entry {
	c.mu.Lock()
	e, known := c.entries[template.Name]
	if !known {
		e = &entry{}
		c.entries[template.Name] = e
	}
	c.mu.Unlock()
	e.mu.Lock()
	return e
}

// entry is what the Catalog keeps of one template.
type entry struct {
	mu sync.Mutex

	built      bool
	uid        types.UID
	generation int64
	from       string // FromHash of the template
	inputs     inputs

	types    []Type
	index    map[string]int
	problems []Problem
	limits   Limits
	// tainted are the offerings with taints.
	tainted []Key
	// own are the custom label keys of the types.
	own sets.Set[string]

	// all are the instance types, built with custom, observed and devices.
	all      []*cloudprovider.InstanceType
	custom   *customLabels
	observed []v1alpha1.ObservedCapacity
	devices  []v1alpha1.ObservedDevices

	// offered are the instance types with the overlay for a resourceVersion, valid from
	// since to until.
	offered         []*cloudprovider.InstanceType
	overlay         overlay
	resourceVersion string
	since, until    time.Time
	// variants are the instance types of offered without requirements for some labels, and
	// without some of the tainted offerings.
	variants map[string][]*cloudprovider.InstanceType

	memory memory
}

// isOf reports whether the entry is of the template in its current generation, with what it takes
// from the MachineDeployment that it follows, and of the current content of its catalogs.
func (e *entry) isOf(template *v1alpha1.KarpenterMachineTemplate, catalogs []catalogVersion) bool {
	return e.built && e.uid == template.UID && e.generation == template.Generation && e.from == template.FromHash() &&
		slices.Equal(e.inputs.Catalogs, catalogs)
}

// rebuild computes the whole entry again.
func (e *entry) rebuild(template *v1alpha1.KarpenterMachineTemplate, in *reader) {
	e.built, e.uid, e.generation, e.from, e.inputs = true, template.UID, template.Generation, template.FromHash(), in.inputs
	e.types, e.problems = typesOf(template, in)
	e.index = make(map[string]int, len(e.types))
	for i := range e.types {
		e.index[e.types[i].Name] = i
	}
	e.limits, e.own, e.tainted = LimitsOf(template, e.types), ownKeys(e.types), taintedOf(e.types)
	e.build(template)
}

// typesOf returns the instance types that a template offers, and why it cannot offer others.
func typesOf(template *v1alpha1.KarpenterMachineTemplate, in *reader) ([]Type, []Problem) {
	types, problems := TypesOf(template, in.Discovered, in.catalogs...)
	types, unknown := inFailureDomains(types, in.FailureDomains)
	return types, slices.Concat(in.Problems, problems, unknown)
}

// TypesOf returns the instance types that a template offers with what discovery has found and its catalogs, and
// what of that it cannot offer. It does not know the failure domains of the Cluster.
func TypesOf(template *v1alpha1.KarpenterMachineTemplate, discovered []Source, catalogs ...*v1alpha1.InstanceTypeCatalog) ([]Type, []Problem) {
	catalogs, problems := fittingCatalogs(discovered, catalogs)
	sources := slices.Clone(discovered)
	for _, catalog := range catalogs {
		listed, wrong := ofCatalog(template, catalog)
		sources, problems = append(sources, listed...), append(problems, wrong...)
	}
	merged, conflicts := merge(template, sources)
	return merged, append(problems, conflicts...)
}

// setUsed sets the offerings in use. The types stay the same values, so that nothing examines
// them again, and the instance types, too, unless other offerings than before are retired.
func (e *entry) setUsed(template *v1alpha1.KarpenterMachineTemplate, offerings []used) {
	before := retired(e.types, e.inputs.Used)
	e.inputs.Used = offerings
	if !equality.Semantic.DeepEqual(before, retired(e.types, offerings)) {
		e.build(template)
	}
}

// build builds the instance types from the types of the entry.
func (e *entry) build(template *v1alpha1.KarpenterMachineTemplate) {
	register(e.types)
	e.custom, e.observed, e.devices = custom.Load(), observedNow(template), devicesNow(template)
	// Types that cannot be built were left out before, as problems.
	e.all, _ = Build(template, withUsed(e.types, e.inputs.Used))
	e.overlay, e.offered, e.resourceVersion, e.variants = overlay{}, e.all, "", nil
}

// instanceTypes returns the instance types with the offerings that are available now.
func (e *entry) instanceTypes(template *v1alpha1.KarpenterMachineTemplate, now time.Time) []*cloudprovider.InstanceType {
	if e.custom == custom.Load() && template.ResourceVersion != "" && template.ResourceVersion == e.resourceVersion &&
		!now.Before(e.since) && (e.until.IsZero() || now.Before(e.until)) {
		return e.offered
	}
	if e.custom != custom.Load() || !equality.Semantic.DeepEqual(e.observed, observedNow(template)) || !equality.Semantic.DeepEqual(e.devices, devicesNow(template)) {
		e.build(template)
	}
	if current := e.overlayOf(template, now); !current.equal(e.overlay) {
		e.overlay, e.offered, e.variants = current, current.apply(e.all), nil
	}
	e.resourceVersion, e.since, e.until = template.ResourceVersion, now, time.Time{}
	if in := ChangesIn(e.unavailable(template, now), now); in > 0 {
		e.until = now.Add(in)
	}
	return e.offered
}
