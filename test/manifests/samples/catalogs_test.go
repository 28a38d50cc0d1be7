// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/plugin"
)

// kubectl runs the plugin with administrator's rights, unless the arguments say otherwise. It returns
// its output and its exit code.
func kubectl(t *testing.T, arguments ...string) (string, int) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	command := plugin.NewCommand(streams)
	command.SetArgs(append(arguments, "--kubeconfig", kubeconfig))
	err := command.ExecuteContext(t.Context())
	if err != nil {
		out.WriteString(err.Error())
	}
	return out.String(), plugin.ExitCode(err)
}

// catalogFiles returns all imported catalogs, and those written by hand.
func catalogFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../../../internal/cli/importer/testdata/*.yaml", "../../../config/samples/instancetypecatalog.yaml", "../../../config/samples/*/instancetypecatalog.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	return files
}

// read returns a catalog of the API server.
func read(t *testing.T, name string) *v1alpha1.InstanceTypeCatalog {
	t.Helper()
	c := &v1alpha1.InstanceTypeCatalog{}
	if err := apiServer.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// The API server accepts each catalog. Applying it again changes nothing, and diff shows what
// applying another content would change, without changing it.
func TestCatalogs(t *testing.T) {
	for _, file := range catalogFiles(t) {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given := &v1alpha1.InstanceTypeCatalog{}
			convert(t, decode(t, content)[0].Object, given)
			name := given.Name
			t.Cleanup(func() { cleanUp(t, given) })
			number := len(given.Spec.InstanceTypes)

			// It does not exist yet.
			if out, code := kubectl(t, "catalog", "diff", "-f", file); code != 1 || strings.Count(out, "\n  + ") != number {
				t.Fatalf("diff without a catalog: exit code %d, want 1 with %d types added\n%s", code, number, out)
			}
			if out, code := kubectl(t, "catalog", "apply", "-f", file, "--dry-run"); code != 0 || !strings.Contains(out, "server dry run") {
				t.Fatalf("dry run: exit code %d\n%s", code, out)
			}
			if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(given), &v1alpha1.InstanceTypeCatalog{}); err == nil {
				t.Fatal("the dry run created the catalog")
			}

			// Applying it twice.
			if out, code := kubectl(t, "catalog", "apply", "-f", file); code != 0 || !strings.Contains(out, name+" serverside-applied") {
				t.Fatalf("apply: exit code %d\n%s", code, out)
			}
			first := read(t, name)
			if checked := catalog.Check(&first.Spec); checked.InstanceTypes != number || len(checked.Problems) > 0 {
				t.Errorf("%d of %d instance types can be used: %v", checked.InstanceTypes, number, checked.Problems)
			}
			if out, code := kubectl(t, "catalog", "apply", "-f", file); code != 0 {
				t.Fatalf("apply again: exit code %d\n%s", code, out)
			}
			if out, code := kubectl(t, "catalog", "diff", "-f", file); code != 0 || out != "" {
				t.Errorf("diff of the same: exit code %d\n%s", code, out)
			}
			if again := read(t, name); again.ResourceVersion != first.ResourceVersion {
				t.Errorf("applying it again changed the resource version from %s to %s", first.ResourceVersion, again.ResourceVersion)
			}
		})
	}
}

// cleanUp deletes a catalog, if it exists.
func cleanUp(t *testing.T, c *v1alpha1.InstanceTypeCatalog) {
	t.Helper()
	// The context of the test has ended by then.
	if err := client.IgnoreNotFound(apiServer.Delete(context.Background(), c)); err != nil {
		t.Error(err)
	}
}

const refreshed = `
apiVersion: karpenter.cluster.x-k8s.io/v1alpha1
kind: InstanceTypeCatalog
metadata: {name: aws-us-east-1}
spec:
  offerings: [{zones: [a, b]}]
  instanceTypes:
  - {name: m1, price: "0.1", capacity: {cpu: "1", memory: 4Gi}}
  - {name: m2, price: "0.2", capacity: {cpu: "2", memory: 8Gi}}
`

// A refresh shows and changes only what is different, with the rights of the sample's CronJob.
func TestRefresh(t *testing.T) {
	objects := createAll(t, "catalog-refresh")
	if len(objects) != 4 {
		t.Errorf("the sample has %d objects, want a ServiceAccount, its role and binding, and a CronJob", len(objects))
	}
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	as := []string{"--as", "system:serviceaccount:karpenter-capi-system:catalog-refresh"}
	write(refreshed)
	t.Cleanup(func() {
		c := &v1alpha1.InstanceTypeCatalog{}
		c.Name = "aws-us-east-1"
		cleanUp(t, c)
	})
	if out, code := kubectl(t, append(as, "catalog", "apply", "-f", file)...); code != 0 {
		t.Fatalf("apply: exit code %d\n%s", code, out)
	}
	// Adjustments of another field manager, which stay. diff shows what is paid.
	adjustments := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pricing": map[string]any{"adjustments": []any{
		map[string]any{"name": "savings-plan", "discountPercent": "50"},
	}}}}}
	adjustments.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.CatalogKind))
	adjustments.SetName("aws-us-east-1")
	if err := apiServer.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(adjustments), client.FieldOwner("prices")); err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(`price: "0.1"`, `price: "0.12"`, "name: m2", "name: m3").Replace(refreshed)
	write(changed)
	before := read(t, "aws-us-east-1")
	out, code := kubectl(t, append(as, "catalog", "diff", "-f", file)...)
	want := "InstanceTypeCatalog aws-us-east-1\n  - m2\n  + m3\n  ~ m1\n      price on-demand a, b: 0.05 → 0.06\n1 instance types added, 1 removed, 1 changed\n"
	if code != 1 || out != want {
		t.Errorf("diff: exit code %d, want 1\n%s\nwant\n%s", code, out, want)
	}
	if after := read(t, "aws-us-east-1"); after.ResourceVersion != before.ResourceVersion {
		t.Error("diff changed the catalog")
	}
	if out, code := kubectl(t, append(as, "catalog", "diff", "-f", file, "-o", "json")...); code != 1 || !strings.Contains(out, `"to": "0.06"`) {
		t.Errorf("diff -o json: exit code %d\n%s", code, out)
	}

	// Another field manager owns a price.
	owned := before.DeepCopy()
	owned.Spec.InstanceTypes[0].Price = "0.3"
	if err := apiServer.Update(t.Context(), owned, client.FieldOwner("someone")); err != nil {
		t.Fatal(err)
	}
	if out, code := kubectl(t, append(as, "catalog", "apply", "-f", file)...); code != 1 || !strings.Contains(out, "--force-conflicts") {
		t.Errorf("apply against another owner: exit code %d\n%s", code, out)
	}
	if out, code := kubectl(t, append(as, "catalog", "apply", "-f", file, "--force-conflicts", "-o", "name")...); code != 0 || out != "instancetypecatalog.karpenter.cluster.x-k8s.io/aws-us-east-1\n" {
		t.Errorf("apply --force-conflicts: exit code %d\n%s", code, out)
	}
	after := read(t, "aws-us-east-1")
	if len(after.Spec.InstanceTypes) != 2 || after.Spec.InstanceTypes[0].Price != "0.12" {
		t.Errorf("the catalog is %+v", after.Spec.InstanceTypes)
	}
	if kept := after.Spec.Pricing; kept == nil || len(kept.Adjustments) != 1 || kept.Adjustments[0].DiscountPercent != "50" {
		t.Errorf("pricing is now %+v, want the adjustments of another field manager", kept)
	}
	// The role is for one catalog.
	write(strings.Replace(refreshed, "aws-us-east-1", "another", 1))
	if out, code := kubectl(t, append(as, "catalog", "apply", "-f", file)...); code != 1 || !strings.Contains(out, "forbidden") {
		t.Errorf("apply of another catalog: exit code %d\n%s", code, out)
	}
	// What is invalid is not sent.
	for content, want := range map[string]string{
		strings.Replace(refreshed, "kind: InstanceTypeCatalog", "kind: NodePool", 1): "expected a karpenter.cluster.x-k8s.io/v1alpha1 InstanceTypeCatalog",
		strings.Replace(refreshed, `price: "0.1", `, "", 1):                          "instance type m1",
		strings.Replace(refreshed, "zones:", "zone:", 1):                             "unknown field",
	} {
		write(content)
		if out, code := kubectl(t, append(as, "catalog", "diff", "-f", file)...); code != 2 || !strings.Contains(out, want) {
			t.Errorf("diff: exit code %d, want 2 with %q\n%s", code, want, out)
		}
		if out, code := kubectl(t, append(as, "catalog", "apply", "-f", file)...); code != 1 || !strings.Contains(out, want) {
			t.Errorf("apply: exit code %d, want 1 with %q\n%s", code, want, out)
		}
	}
}
