// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// What kubectl get prints of a template.
func TestColumns(t *testing.T) {
	object := edit(t, "metadata/name", longName)
	if err := apiServer.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(object), template); err != nil {
		t.Fatal(err)
	}
	template.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionClusterReady, "Test", "unreachable")
	template.Status.Version = "v1.36.3+rke2r1"
	template.Status.AvailableOfferings, template.Status.Offerings, template.Status.InstanceTypes = 29990, 30000, 1000
	template.Status.NodeClaims, template.Status.Machines = 7, 8
	if err := apiServer.Status().Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	checkColumns(t, "karpentermachinetemplates", "Name Ready Version Available Offerings Age", "InstanceTypes NodeClaims Machines Message",
		longName+" Unknown v1.36.3+rke2r1 29990 30000")
}

// What kubectl get prints of a catalog.
func TestCatalogColumns(t *testing.T) {
	catalog := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: longName}, Spec: v1alpha1.InstanceTypeCatalogSpec{Source: "aws us-east-1"}}
	if err := apiServer.Create(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	catalog.StatusConditions().SetUnknown(v1alpha1.ConditionInstanceTypesValid)
	catalog.Status.InstanceTypes, catalog.Status.Offerings, catalog.Status.Templates = 1000, 30000, 200
	if err := apiServer.Status().Update(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	checkColumns(t, "instancetypecatalogs", "Name Ready InstanceTypes Offerings Templates Age", "Source Message", longName+" Unknown 1000 30000 200")
}

const (
	// longName is as long as names usually are.
	longName = "germanywestcentral-1"
	// longAge is as long as kubectl prints an age.
	longAge = "2y364d"
	// widest is the width of a terminal.
	widest = 80
)

// checkColumns compares the columns that kubectl get prints, those that it prints with -o wide only, and the cells of
// the object with longName, without its age. kubectl puts three spaces between columns
// (k8s.io/cli-runtime: pkg/printers/tabwriter.go).
func checkColumns(t *testing.T, plural, wantNames, wantWide, wantCells string) {
	t.Helper()
	reader, err := discovery.NewDiscoveryClientForConfig(apiConfig)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := reader.RESTClient().Get().AbsPath("/apis/karpenter.cluster.x-k8s.io/v1alpha1/"+plural+"/"+longName).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := metav1.Table{}
	if err := json.Unmarshal(answer, &table); err != nil {
		t.Fatal(err)
	}
	var names, wide, cells []string
	width := 0
	for i, column := range table.ColumnDefinitions {
		if column.Priority > 0 {
			wide = append(wide, column.Name)
			continue
		}
		names = append(names, column.Name)
		cell := longAge
		if column.Name != "Age" {
			cell = fmt.Sprint(table.Rows[0].Cells[i])
			cells = append(cells, cell)
		}
		width += max(len(column.Name), len(cell)) + 3
	}
	if diff := cmp.Diff(wantNames, strings.Join(names, " ")); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantWide, strings.Join(wide, " ")); diff != "" {
		t.Errorf("columns of -o wide (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantCells, strings.Join(cells, " ")); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if width -= 3; width > widest {
		t.Errorf("a line has %d characters, more than %d", width, widest)
	}
}
