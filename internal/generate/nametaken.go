// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"fmt"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// nameTakenError is the error for a generated object whose name another one has.
type nameTakenError struct{ error }

// nameTaken returns an error if the cache has another resource with the name of a generated one, whose Machines
// are not those of the offering. The error is an UnlaunchableError.
func nameTaken(ctx context.Context, clusters *clients.Clusters, generated *scalable.Resource) error {
	existing, err := scalable.Get(ctx, clusters, generated.GetName())
	if err != nil || existing == nil {
		return err
	}
	if err := scalable.Differs(string(existing.Kind().Name()), existing.API(), generated.API(), clusters.Cluster); err != nil {
		return UnlaunchableError{nameTakenError{err}}
	}
	return nil
}

// names are the names of the resources that a template generates, with their offerings.
type names map[string]namedOffering

type namedOffering struct {
	catalog.Key
	hash string
}

// add adds the resource of an offering. It returns an error if another offering has its name.
func (n names) add(generated *scalable.Resource, offering catalog.Key) error {
	name, hash := generated.GetName(), generated.GetLabels()[v1alpha1.TemplateHashLabel]
	if other, known := n[name]; known && other.hash != hash {
		return nameTakenError{fmt.Errorf("%s %s is also the name for offering %s: use a KarpenterMachineTemplate of another name for one of them", generated.Kind().Name(), name, other)}
	}
	n[name] = namedOffering{offering, hash}
	return nil
}

// taken returns the offerings whose names other resources in the cache have.
func (n names) taken(ctx context.Context, clusters *clients.Clusters, template string) (map[catalog.Key]error, error) {
	existing, err := scalable.List(ctx, clusters)
	if err != nil {
		return nil, err
	}
	problems := map[catalog.Key]error{}
	for _, resource := range existing {
		offering, is := n[resource.GetName()]
		if !is || offering.hash == resource.GetLabels()[v1alpha1.TemplateHashLabel] {
			continue
		}
		generated := resource.DeepCopy()
		generated.SetLabels(lo.Assign(scalable.GeneratedLabels(clusters.Cluster, template), map[string]string{v1alpha1.TemplateHashLabel: offering.hash}))
		problems[offering.Key] = nameTakenError{scalable.Differs(string(resource.Kind().Name()), resource.API(), generated.API(), clusters.Cluster)}
	}
	return problems, nil
}
