// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// apply creates the objects of a manifest.
func apply(ctx context.Context, c client.Client, name string) error {
	content, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return err
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("%s: creating %s %s: %w", name, object.GetKind(), object.GetName(), err)
		}
	}
}
