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
	object := edit(t, "metadata/name", "columns")
	if err := apiServer.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := apiServer.Get(t.Context(), client.ObjectKeyFromObject(object), template); err != nil {
		t.Fatal(err)
	}
	template.StatusConditions().SetFalse(v1alpha1.ConditionClusterReady, "Test", "it is False")
	template.Status.Version = "v1.36.3"
	template.Status.Available, template.Status.InstanceTypes, template.Status.NodeClaims, template.Status.Machines = "270/300", 50, 7, 8
	if err := apiServer.Status().Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}

	checkColumns(t, "karpentermachinetemplates/columns", "Name Ready Version Available InstanceTypes NodeClaims Machines Age", "columns False v1.36.3 270/300 50 7 8")
}

// What kubectl get prints of a catalog.
func TestCatalogColumns(t *testing.T) {
	catalog := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "columns"}, Spec: v1alpha1.InstanceTypeCatalogSpec{Source: "aws us-east-1"}}
	if err := apiServer.Create(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	catalog.StatusConditions().SetTrue(v1alpha1.ConditionInstanceTypesValid)
	catalog.Status.InstanceTypes, catalog.Status.Offerings, catalog.Status.Templates = 50, 300, 2
	if err := apiServer.Status().Update(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	checkColumns(t, "instancetypecatalogs/columns", "Name Ready InstanceTypes Offerings Templates Source Age", "columns True 50 300 2 aws us-east-1")
}

// checkColumns compares the columns and cells that kubectl get prints of an object, without its age.
func checkColumns(t *testing.T, path, wantNames, wantCells string) {
	t.Helper()
	reader, err := discovery.NewDiscoveryClientForConfig(apiConfig)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := reader.RESTClient().Get().AbsPath("/apis/karpenter.cluster.x-k8s.io/v1alpha1/"+path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := metav1.Table{}
	if err := json.Unmarshal(answer, &table); err != nil {
		t.Fatal(err)
	}
	var names, cells []string
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			names, cells = append(names, column.Name), append(cells, fmt.Sprint(table.Rows[0].Cells[i]))
		}
	}
	if diff := cmp.Diff(wantNames, strings.Join(names, " ")); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantCells, strings.Join(cells[:len(cells)-1], " ")); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
