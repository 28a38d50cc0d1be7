// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// question is what is asked with one dry run.
type question struct {
	object client.Object
	// offerings cannot be created if the object is rejected.
	offerings []catalog.Key
}

// questions are the questions about one revision of a template.
type questions struct {
	// offerings are the generated ones, and problems why some of them cannot be created.
	offerings []catalog.Key
	problems  map[catalog.Key]error
	names     names
	// ask has the questions by the content of their objects.
	ask map[string]*question
}

// questionsOf generates what every offering of a template needs. Of the scalable resources it asks about the
// first one only, for all offerings: what the template sets is the same in all of them, and the rest is valid by
// the CustomResourceDefinitions of the operator.
func questionsOf(generator *Generator, types []catalog.Type) questions {
	q := questions{problems: map[catalog.Key]error{}, names: names{}, ask: map[string]*question{}}
	ask := func(content string, object client.Object, offering catalog.Key) {
		if q.ask[content] == nil {
			q.ask[content] = &question{object: object}
		}
		q.ask[content].offerings = append(q.ask[content].offerings, offering)
	}
	var first *scalable.Resource
	var firstContent string
	for i := range types {
		for j := range types[i].Offerings {
			offering := &types[i].Offerings[j]
			if offering.MachineDeployment != "" {
				continue
			}
			key := types[i].KeyOf(offering)
			q.offerings = append(q.offerings, key)
			generated, err := generator.Generate(&types[i], offering)
			if err == nil {
				err = q.names.add(generated.Resource, key)
			}
			if err != nil {
				q.problems[key] = err
				continue
			}
			for _, object := range generated.Objects {
				ask(ContentOf(object), object, key)
			}
			if first == nil {
				first, firstContent = generated.Resource, resourceContentOf(generated.Resource)
			}
			ask(firstContent, first.API(), key)
		}
	}
	return q
}
