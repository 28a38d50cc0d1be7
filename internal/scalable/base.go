// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// AcceptsBootstrap returns an error if an object is not a template of bootstrap configurations.
func AcceptsBootstrap(base *unstructured.Unstructured) error {
	if err := isOfGroup(base, reference.BootstrapGroup); err != nil {
		return err
	}
	return isTemplate(base)
}

// isOfGroup returns an error if an object is of another API group. What is generated from a base is of its group, so
// another one would let a template create any kind for which the operator has rights, such as a MachineDeployment.
func isOfGroup(base *unstructured.Unstructured, group string) error {
	if found := base.GroupVersionKind().Group; found != group {
		return fmt.Errorf("%s %s is of API group %s: name a kind of %s", base.GetKind(), client.ObjectKeyFromObject(base), found, group)
	}
	return nil
}

// makesPools reports whether a kind is a machine pool or a template of one, by its name
// (Cluster API's book: providers/contracts/infra-machinepool.md).
func makesPools(kind string) bool {
	return strings.HasSuffix(strings.TrimSuffix(kind, clusterv1.TemplateSuffix), "MachinePool")
}

// IsTemplateKind reports whether the kind of an object is a template, by its name.
func IsTemplateKind(object *unstructured.Unstructured) bool {
	return strings.HasSuffix(object.GetKind(), clusterv1.TemplateSuffix)
}

// isTemplate returns an error if an object is not a template, by its kind and by what it has. To Cluster API, a template without
// spec.template is an empty one (controllers/external/util.go, GenerateTemplate), such as a KubeadmConfigTemplate that changes nothing.
func isTemplate(object *unstructured.Unstructured) error {
	if !IsTemplateKind(object) {
		return fmt.Errorf("%s %s is not a template: name a kind that ends in Template", object.GetKind(), client.ObjectKeyFromObject(object))
	}
	if _, _, err := unstructured.NestedMap(object.Object, "spec", "template"); err != nil {
		return fmt.Errorf("%s %s is not a template: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return nil
}
