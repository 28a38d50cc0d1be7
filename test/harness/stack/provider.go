// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Provider is an infrastructure provider that was not written for tests.
type Provider struct {
	// Dir is a folder in Options.BinDir with the provider's manager, its CustomResourceDefinitions in crds, and its webhook
	// configurations in webhooks.yaml.
	Dir string

	// Contract is the version of Cluster API's contract that the CustomResourceDefinitions follow, and Versions are the versions of
	// them that do, as in the label that clusterctl expects: v1beta1_v1beta2. If it is empty, that is the one of the same name.
	Contract, Versions string

	// Limited means that the manager has no arguments for the rate of its requests.
	Limited bool

	// Arguments and Env are those of the manager, in addition to what all managers have.
	Arguments, Env []string

	// Objects are created before the Cluster, with their status if they have one. The first is its infrastructure.
	Objects []client.Object
}

// manager returns the file of the manager in Options.BinDir.
func (p *Provider) manager() string { return filepath.Join(p.Dir, "manager") }

// labels returns those of the provider's CustomResourceDefinitions.
func (p *Provider) labels() map[string]string {
	return map[string]string{clusterv1.GroupVersion.Group + "/" + p.Contract: cmp.Or(p.Versions, p.Contract)}
}

// createWithStatus creates an object. What another controller than the one of its provider manages, such as infrastructure with
// the annotation managed-by, also has a status.
func createWithStatus(ctx context.Context, c client.Client, obj client.Object) error {
	content, hasContent := obj.(*unstructured.Unstructured)
	if !hasContent || content.Object["status"] == nil {
		return c.Create(ctx, obj)
	}
	// The answer of the API server replaces an object.
	created := content.DeepCopy()
	if err := client.IgnoreAlreadyExists(c.Create(ctx, created)); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": content.Object["status"]})
	if err != nil {
		return err
	}
	return c.Status().Patch(ctx, created, client.RawPatch(types.MergePatchType, patch))
}
