// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
	"github.com/karpenter-capi/karpenter-capi/internal/version"
)

// Launch is what a claim gets from the current state of a template: the scalable resource
// of its offering, and annotations. It is used when a claim is launched, and when its scalable resource does not exist.
type Launch struct {
	// Resource is the name of the scalable resource.
	Resource string
	// Generated has the objects to create; nil if the resource is an adopted one.
	Generated *Generated
	// Version is that of the Machines; zero if the resource is an adopted one.
	Version version.Version

	annotations map[string]string
}

// launchAnnotations are all annotations that a claim can get with a launch.
var launchAnnotations = []string{
	v1alpha1.ScalableResourceAnnotation, v1alpha1.TemplateHashAnnotation, v1alpha1.TemplateRevisionAnnotation, v1alpha1.PriceAnnotation,
	v1alpha1.MachineHashesAnnotation,
}

// UnlaunchableError is the error for an offering with which no claim can be launched: the
// template does not offer it, or nothing can be generated for it. After any other error
// this is unknown.
type UnlaunchableError struct{ error }

// Unwrap returns the cause.
func (e UnlaunchableError) Unwrap() error { return e.error }

// Launcher returns what claims get with the offerings of one state of a template. It reads the bases
// and compiles the patches once, on first use. Only one goroutine can use it at a time.
type Launcher struct {
	clusters *clients.Clusters
	catalog  *catalog.Catalog
	template *v1alpha1.KarpenterMachineTemplate
	// generator returns the generator of the template.
	generator func() (*Generator, error)
}

// NewLauncher returns the Launcher for a template.
func NewLauncher(ctx context.Context, clusters *clients.Clusters, known *catalog.Catalog, template *v1alpha1.KarpenterMachineTemplate) *Launcher {
	ctx = context.WithoutCancel(ctx)
	return &Launcher{clusters: clusters, catalog: known, template: template, generator: sync.OnceValues(func() (*Generator, error) {
		return GeneratorFor(ctx, clusters, template)
	})}
}

// LaunchOf returns what a claim gets with an offering of a template.
func LaunchOf(ctx context.Context, clusters *clients.Clusters, known *catalog.Catalog, template *v1alpha1.KarpenterMachineTemplate, key catalog.Key) (*Launch, error) {
	return NewLauncher(ctx, clusters, known, template).Of(ctx, key)
}

// Of returns what a claim gets with an offering.
func (l *Launcher) Of(ctx context.Context, key catalog.Key) (*Launch, error) {
	instanceType, offering, err := l.catalog.Find(ctx, l.template, key)
	if catalog.IsNotOffered(err) {
		return nil, UnlaunchableError{err}
	}
	if err != nil {
		return nil, err
	}
	launch := &Launch{Resource: offering.MachineDeployment, annotations: map[string]string{
		v1alpha1.TemplateRevisionAnnotation: catalog.RevisionOf(l.template),
		v1alpha1.PriceAnnotation:            strconv.FormatFloat(offering.Price, 'f', -1, 64),
	}}
	if launch.Resource == "" {
		generator, err := l.generator()
		if errors.As(err, &tenancy.NotAllowed{}) {
			return nil, UnlaunchableError{err}
		}
		if err != nil {
			return nil, err
		}
		if launch.Generated, err = generator.generateFree(ctx, l.clusters, instanceType, offering); err != nil {
			return nil, err
		}
		if err := nameTaken(ctx, l.clusters, launch.Generated.Resource); err != nil {
			return nil, err
		}
		launch.Resource, launch.Version = launch.Generated.Resource.GetName(), generator.version
		launch.annotations[v1alpha1.TemplateHashAnnotation] = launch.Generated.Resource.GetLabels()[v1alpha1.TemplateHashLabel]
		launch.annotations[v1alpha1.MachineHashesAnnotation] = launch.Generated.Hashes.String()
	}
	launch.annotations[v1alpha1.ScalableResourceAnnotation] = launch.Resource
	return launch, nil
}

// generateFree returns what is generated for an offering. If the resource of its name ends, so that it creates no
// Machines until its Nodes are drained, it has another name. A PodDisruptionBudget can forbid these drains
// until the claims that wait have their Nodes.
func (g *Generator) generateFree(ctx context.Context, clusters *clients.Clusters, instanceType *catalog.Type, offering *catalog.Offering) (*Generated, error) {
	ending := types.UID("")
	for {
		generated, err := g.generate(instanceType, offering, ending)
		if errors.As(err, &UnreadError{}) {
			return nil, err
		}
		if err != nil {
			return nil, UnlaunchableError{err}
		}
		if ending, err = scalable.Ending(ctx, clusters, generated.Resource.GetName()); err != nil || ending == "" {
			return generated, err
		}
	}
}

// LaunchOfClaim returns what a claim gets with the offering that it has.
func LaunchOfClaim(ctx context.Context, clusters *clients.Clusters, known *catalog.Catalog, claim *karpv1.NodeClaim) (*Launch, error) {
	name := lo.FromPtr(claim.Spec.NodeClassRef).Name
	template, err := clusters.SharedTemplate(ctx, name)
	if err != nil {
		return nil, err
	}
	if template == nil {
		return nil, UnlaunchableError{fmt.Errorf("KarpenterMachineTemplate %s does not exist", name)}
	}
	return LaunchOf(ctx, clusters, known, template, catalog.KeyOf(claim))
}

// Annotate returns the annotations of a claim with those of this launch, and without
// those of an earlier one.
func (l *Launch) Annotate(annotations map[string]string) map[string]string {
	return lo.Assign(lo.OmitByKeys(annotations, launchAnnotations), l.annotations)
}

// Current returns what a template generates for the offering of a scalable resource in its present
// state. It returns nil if that is another resource or nothing; conditions of the template report
// what is wrong with it.
func Current(ctx context.Context, clusters *clients.Clusters, known *catalog.Catalog, template *v1alpha1.KarpenterMachineTemplate, resource *scalable.Resource) *Generated {
	launch, err := LaunchOf(ctx, clusters, known, template, scalable.OfferingOf(resource))
	if err != nil || launch.Resource != resource.GetName() {
		return nil
	}
	return launch.Generated
}
