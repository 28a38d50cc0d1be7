// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// The objects of the variants. They are templates, whose values are in render.
var (
	//go:embed manifests/operator.yaml
	operatorManifests string
	//go:embed manifests/kwok.yaml
	kwokManifests string
	//go:embed manifests/instance-types.json
	kwokInstanceTypes string
	//go:embed manifests/cluster-api.yaml
	clusterAPIManifests string
	//go:embed manifests/nodepool.yaml
	nodePool string
)

// Names in the manifests.
const (
	instanceType = "general"
	poolName     = "general"
	templateName = "general"
)

var podLabels = map[string]string{"bench": "true"}

// nodeClass is the kind of a NodePool's NodeClass.
type nodeClass struct{ Group, Kind string }

// Each offering is a zone, and has a Deployment.
func zoneName(i int) string       { return fmt.Sprintf("zone-%d", i+1) }
func deploymentName(i int) string { return fmt.Sprintf("pods-%d", i+1) }

// shareOf returns how many of n are in part i of the given number of parts.
func shareOf(n, parts, i int) int { return n*(i+1)/parts - n*i/parts }

// render fills in manifests.
func render(manifests string, offerings int, class nodeClass) ([]byte, error) {
	values := struct {
		ClusterName, Namespace string
		NodeClass              nodeClass
		Zones                  []string
	}{ClusterName: stack.ClusterName, Namespace: stack.ClusterNamespace, NodeClass: class}
	for i := range offerings {
		values.Zones = append(values.Zones, zoneName(i))
	}
	parsed, err := template.New("manifests").Parse(manifests)
	if err != nil {
		return nil, err
	}
	rendered := &bytes.Buffer{}
	err = parsed.Execute(rendered, values)
	return rendered.Bytes(), err
}
