// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A resource that is being deleted creates no Machines until those that it has no longer exist. The same holds
// while the MachineSet that creates its Machines is being deleted with Machines, but not for an older or empty one.
func TestEnding(t *testing.T) {
	deleted := func(o client.Object) {
		o.SetDeletionTimestamp(new(metav1.NewTime(fixture.Noon)))
		o.SetFinalizers([]string{"x"})
	}
	older := func(o client.Object) {
		o.SetAnnotations(map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"})
	}
	empty := func(o client.Object) { o.(*clusterv1.MachineSet).Status.Replicas = new(int32(0)) }
	type changes []func(client.Object)
	for name, tc := range map[string]struct {
		pool             bool
		deployment       changes
		sets             []changes
		none, noMachines bool
		ofUser           bool // its Machine has no label of a template
		want             bool
	}{
		"no resource":                            {none: true},
		"a MachineDeployment":                    {sets: []changes{nil}},
		"one that is being deleted":              {deployment: changes{deleted}, want: true},
		"the same, without Machines":             {deployment: changes{deleted}, noMachines: true},
		"the same, with Machines of a user":      {deployment: changes{deleted}, ofUser: true},
		"its MachineSet is being deleted":        {sets: []changes{{deleted}}, want: true},
		"an empty MachineSet is being deleted":   {sets: []changes{{deleted, empty}}},
		"an older MachineSet is being deleted":   {sets: []changes{{deleted, older}, nil}},
		"the first of two, which both create":    {sets: []changes{{deleted}, nil}, want: true},
		"the second of two, which both create":   {sets: []changes{nil, {deleted}}, want: true},
		"a MachinePool":                          {pool: true},
		"a MachinePool that is being deleted":    {pool: true, deployment: changes{deleted}, want: true},
		"the same MachinePool, without Machines": {pool: true, deployment: changes{deleted}, noMachines: true},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "general", UID: "uid", Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}
			var resource client.Object = &clusterv1.MachineDeployment{ObjectMeta: meta}
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Hour))
			if tc.pool {
				resource = &clusterv1.MachinePool{ObjectMeta: meta}
				machine.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "general"}
			}
			for _, change := range tc.deployment {
				change(resource)
			}
			var objects []client.Object
			if !tc.none {
				objects = append(objects, resource)
			}
			if !tc.noMachines {
				if !tc.ofUser {
					machine.Labels[v1alpha1.TemplateLabel] = "general"
				}
				objects = append(objects, machine)
			}
			for i, changes := range tc.sets {
				set := fixture.MachineSet(string(rune('a'+i)), "general", 1)
				set.Status.Replicas = new(int32(1))
				for _, change := range changes {
					change(set)
				}
				objects = append(objects, set)
			}
			ofResource := func(o client.Object) []string { return []string{clients.ResourceOf(o)} }
			both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
				WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, ofResource).WithIndex(&clusterv1.Machine{}, clients.ResourceField, ofResource).Build()}
			got, err := Ending(t.Context(), &clients.Clusters{Cluster: fixture.Served, Management: both, Workload: both}, "general")
			if err != nil || (got == "uid") != tc.want || (got == "") == tc.want {
				t.Errorf("got %q (%v), want the UID of the resource: %t", got, err, tc.want)
			}
		})
	}
}
