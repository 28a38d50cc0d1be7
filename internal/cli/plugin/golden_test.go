// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// update is whether tests write the catalogs that they compare with.
var update = flag.Bool("update", false, "write testdata and config/samples")

// testdata are the files of the clouds.
const testdata = "../importer/testdata"

// run runs a command, and returns its output, its messages and its exit code.
func run(t *testing.T, arguments ...string) (string, string, int) {
	t.Helper()
	streams, _, out, messages := genericiooptions.NewTestIOStreams()
	command := NewCommand(streams)
	command.SetArgs(arguments)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		messages.WriteString(err.Error())
	}
	return out.String(), messages.String(), ExitCode(err)
}

// goldens returns the catalogs that commands in their comments made.
func goldens(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{filepath.Join(testdata, "*.yaml"), "../../../config/samples/*/instancetypecatalog.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		all = append(all, found...)
	}
	return all
}

// The files of each cloud give the catalogs in testdata and config/samples, to the byte: the
// comment at the top of each has its command. go test -run TestGolden -update writes them.
func TestGolden(t *testing.T) {
	made := 0
	for _, path := range goldens(t) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		header, arguments := commandIn(content)
		if len(arguments) == 0 {
			continue // it was written by hand
		}
		made++
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			absolute, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(testdata)
			got, messages, code := run(t, arguments...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, messages)
			}
			again, _, _ := run(t, arguments...)
			if got != again {
				t.Error("the same files gave another catalog")
			}
			load(t, []byte(got))
			want := append(bytes.Clone(header), got...)
			if *update {
				if err := os.WriteFile(absolute, want, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), string(content)); diff != "" {
				t.Errorf("it is not what its command prints (-command +file):\n%s", diff)
			}
		})
	}
	if made < 9 {
		t.Errorf("%d catalogs with a command, want at least one for each format and sample", made)
	}
}

// commandIn returns the comment at the top of a file, and the arguments of the command in it.
func commandIn(content []byte) ([]byte, []string) {
	end := bytes.Index(content, []byte("apiVersion:"))
	if end < 0 {
		end = len(content)
	}
	header := content[:end]
	_, command, _ := strings.Cut(strings.ReplaceAll(string(header), "\\\n#", " "), "kubectl karpenter-capi ")
	command, _, _ = strings.Cut(command, "\n")
	return header, strings.Fields(strings.ReplaceAll(command, "'", ""))
}

// load returns the catalog in a file.
func load(t *testing.T, content []byte) *v1alpha1.InstanceTypeCatalog {
	t.Helper()
	c := &v1alpha1.InstanceTypeCatalog{}
	if err := yaml.UnmarshalStrict(content, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// 50 types in 3 zones, on demand and spot, are one command, and at most 120 lines by hand: both
// give the same offerings at the same prices.
func TestFiftyTypes(t *testing.T) {
	folder := filepath.Join(testdata, "aws-50")
	printed, messages, code := run(t, "catalog", "import", "aws",
		"--from", folder+"/instance-types.json", "--from", folder+"/instance-type-offerings.json",
		"--from", folder+"/spot-price-history.json", "--from", folder+"/price-list.json")
	if code != 0 {
		t.Fatal(messages)
	}
	byHand, err := os.ReadFile("../../../config/samples/catalog-by-hand/instancetypecatalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(byHand, []byte("\n")); lines > 120 {
		t.Errorf("by hand, there are %d lines, want at most 120", lines)
	}
	imported, written := offeringsOf(t, load(t, []byte(printed))), offeringsOf(t, load(t, byHand))
	if len(imported) != 50*3*2 {
		t.Errorf("%d offerings are imported, want 300", len(imported))
	}
	if diff := cmp.Diff(imported, written); diff != "" {
		t.Errorf("by hand, there are other offerings (-imported +by hand):\n%s", diff)
	}
}

// offeringsOf returns the capacity and the price of each offering of a catalog.
func offeringsOf(t *testing.T, c *v1alpha1.InstanceTypeCatalog) map[string]string {
	t.Helper()
	types, problems := catalog.Expand(&c.Spec)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	offerings := map[string]string{}
	for i := range types {
		capacity := types[i].Capacity
		for j := range types[i].Offerings {
			o := &types[i].Offerings[j]
			offerings[types[i].KeyOf(o).String()] = strings.Join([]string{capacity.Cpu().String(), capacity.Memory().String(), capacity.Pods().String(), number(o.Price)}, " ")
		}
	}
	return offerings
}
