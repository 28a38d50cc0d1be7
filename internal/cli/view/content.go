// SPDX-License-Identifier: Apache-2.0

package view

import (
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Content returns a copy of an object as JSON. The converter of package runtime does not call the MarshalJSON of the durations in
// NodePools and NodeClaims.
func Content(object client.Object) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	return content, json.Unmarshal(text, &content)
}
