// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Create creates the objects of a YAML file: those of Cluster API and its providers in the management cluster, all
// others, including KarpenterMachineTemplates, in the workload cluster.
func (s *Stack) Create(ctx context.Context, manifests []byte) error {
	objects, err := decode(manifests)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := s.clusterOf(obj).Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

func (s *Stack) clusterOf(obj *unstructured.Unstructured) client.Client {
	group := obj.GroupVersionKind().Group
	if group != v1alpha1.Group && strings.HasSuffix("."+group, ".cluster.x-k8s.io") {
		return s.Management
	}
	return s.Workload
}

// decode reads the objects of a YAML file with any number of documents. It skips documents without content.
func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	var objects []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
}
