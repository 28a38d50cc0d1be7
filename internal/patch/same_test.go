// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// yamlBlock is a block of YAML in Markdown, in a list or not.
var yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// The same offering renders to the same each time: otherwise all its Nodes would drift repeatedly. That holds for the
// patches of each sample and each example in the documentation, and for each function.
func TestTheSameRendersTheSame(t *testing.T) {
	offering := variables
	offering.MaxPods, offering.FailureDomain = 58, "1"
	offering.KubeReserved = map[string]string{"cpu": "70m", "memory": "574Mi", "ephemeral-storage": "1Gi"}
	offering.Labels = map[string]string{
		"kubernetes.io/arch": "amd64", "x.y/size": "2", "example.com/fast-disk": "true", "topology.kubernetes.io/region": "us-east-1",
	}
	for name, value := range map[string]string{"cpu": "4", "memory": "16384", "gpu-count": "1", "gpu-name": "t4"} {
		offering.Labels["karpenter.cluster.x-k8s.io/instance-"+name] = value
	}
	tested := samples(t)
	if len(tested) < 20 {
		t.Errorf("found only %d samples with patches", len(tested))
	}
	for name, tc := range functionCases {
		tested["the function "+name] = added(tc.template)
	}
	tested["a map"] = added(`{{ range $key, $value := .labels }}{{ $key }}={{ $value }},{{ end }}{{ .labels }}{{ printf "%v" .labels }}`)
	for name, patches := range tested {
		t.Run(name, func(t *testing.T) {
			first := map[v1alpha1.PatchTarget]string{}
			for range 100 {
				compiled, err := Compile(patches)
				if err != nil {
					t.Fatal(err)
				}
				for _, target := range []v1alpha1.PatchTarget{v1alpha1.PatchTargetInfrastructure, v1alpha1.PatchTargetBootstrap} {
					operations, err := compiled.Render(target, offering)
					if err != nil {
						t.Fatal(err)
					}
					if before, found := first[target]; found && before != operations.Key() {
						t.Fatalf("%s renders to %s the first time, and to %s the next time", target, before, operations.Key())
					}
					first[target] = operations.Key()
				}
			}
		})
	}
}

// samples returns the patches of the samples and of the examples in the documentation, by file and template.
func samples(t *testing.T) map[string][]v1alpha1.Patch {
	t.Helper()
	root, found := filepath.Join("..", ".."), map[string][]v1alpha1.Patch{}
	add := func(file string, content []byte) {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 1<<16)
		for {
			template := v1alpha1.KarpenterMachineTemplate{}
			if err := decoder.Decode(&template); errors.Is(err, io.EOF) {
				return
			} else if err == nil && template.Kind == v1alpha1.Kind && len(template.Spec.Patches) > 0 {
				found[file+" "+template.Name] = template.Spec.Patches
			}
		}
	}
	for _, folder := range []string{"config/samples", "docs", "README.md"} {
		if err := filepath.WalkDir(filepath.Join(root, folder), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(file)
			name, _ := filepath.Rel(root, file)
			switch filepath.Ext(file) {
			case ".yaml":
				add(name, content)
			case ".md":
				for _, block := range yamlBlock.FindAllSubmatch(content, -1) {
					add(name, []byte(strings.ReplaceAll("\n"+string(block[2]), "\n"+string(block[1]), "\n")))
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return found
}
