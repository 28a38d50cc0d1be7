// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// Source is where objects are counted, and how. Equal sources have one watch.
type Source struct {
	APIVersion, Kind string
	// Namespace is empty for that of the served Cluster.
	Namespace string
	// Selector is a label selector as text; empty for all objects.
	Selector string
	// Free and Consumer are the expressions. Consumer can be empty.
	Free, Consumer string
}

// Pool is the part of a source that offerings share: its objects with some labels.
type Pool struct {
	Source
	// Labels are labels as text, such as size=large,zone=a; empty for all objects of the source.
	Labels string
}

// PoolsOf returns the pools of an offering of an instance type. The error says what a user has to correct.
func PoolsOf(given []v1alpha1.CapacitySource, instanceType, zone string) ([]Pool, error) {
	var pools []Pool
	for i := range given {
		pool, err := poolOf(&given[i], instanceType, zone)
		if err != nil {
			return nil, fmt.Errorf("capacityFrom[%d].%w", i, err)
		}
		pools = append(pools, pool)
	}
	return lo.Uniq(pools), nil
}

func poolOf(given *v1alpha1.CapacitySource, instanceType, zone string) (Pool, error) {
	version, err := schema.ParseGroupVersion(given.APIVersion)
	if err != nil {
		return Pool{}, fmt.Errorf("apiVersion: %w", err)
	}
	if secret(version.Group, given.Kind) {
		return Pool{}, fmt.Errorf("kind: objects of kind %s in %s cannot be counted, because a count could reveal what is secret in them", given.Kind, given.APIVersion)
	}
	selector := ""
	if given.Selector != nil {
		parsed, err := metav1.LabelSelectorAsSelector(given.Selector)
		if err != nil {
			return Pool{}, fmt.Errorf("selector: %w", err)
		}
		selector = parsed.String()
	}
	wanted := labels.Set{}
	for _, label := range []struct{ field, key, value string }{
		{"instanceTypeLabel", given.InstanceTypeLabel, instanceType}, {"zoneLabel", given.ZoneLabel, zone},
	} {
		if label.key == "" {
			continue
		}
		if wrong := validation.IsQualifiedName(label.key); len(wrong) > 0 {
			return Pool{}, fmt.Errorf("%s: %q is no label key: %s", label.field, label.key, strings.Join(wrong, "; "))
		}
		if label.value == "" {
			return Pool{}, fmt.Errorf("%s: the offering has no zones: set zones, or remove zoneLabel", label.field)
		}
		wanted[label.key] = label.value
	}
	if _, err := compile(given.Free); err != nil {
		return Pool{}, fmt.Errorf("free: %w", err)
	}
	if _, err := compile(given.Consumer); given.Consumer != "" && err != nil {
		return Pool{}, fmt.Errorf("consumer: %w", err)
	}
	return Pool{
		Source: Source{
			APIVersion: given.APIVersion, Kind: given.Kind, Namespace: given.Namespace, Selector: selector,
			Free: given.Free, Consumer: given.Consumer,
		},
		Labels: wanted.String(),
	}, nil
}

// secret reports whether objects of a kind can have secrets. The operator has the right to list these kinds, and a
// user of the workload cluster could read a secret bit by bit with an expression.
func secret(group, kind string) bool {
	return group == "" && kind == "Secret" || group == reference.BootstrapGroup || group == reference.ControlPlaneGroup
}

// String returns the pool for messages, such as BareMetalHosts with labels size=large,zone=a in namespace hosts.
func (p Pool) String() string {
	text := p.Kind + "s"
	if wanted := strings.Join(lo.Compact([]string{p.Selector, p.Labels}), ","); wanted != "" {
		text += " with labels " + wanted
	}
	if p.Namespace != "" {
		text += " in namespace " + p.Namespace
	}
	return text
}
