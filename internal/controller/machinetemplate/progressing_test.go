// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"errors"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// A template with Machines reports that objects of its Machines cannot be read, and no longer when they can.
// The template stays Ready.
func TestObjectsOfMachinesNotReadable(t *testing.T) {
	for name, tc := range map[string]struct {
		unlisted string
		replicas int32
		machines int32 // those that exist
		pool     bool
		missing  string // a kind without a CustomResourceDefinition, or a pool without its infrastructure
		want     string // the reason; empty if the condition is True
	}{
		"all kinds are listed":           {replicas: 1},
		"machines cannot be listed":      {unlisted: "TestMachine", replicas: 1, want: "ObjectsNotReadable"},
		"configurations cannot":          {unlisted: "TestConfig", replicas: 1, want: "ObjectsNotReadable"},
		"there is no Machine to look at": {unlisted: "TestMachine"},
		"the last Machine is deleted":    {unlisted: "TestMachine", machines: 1, want: "ObjectsNotReadable"},
		"machines of a pool cannot":      {unlisted: "TestMachine", replicas: 1, pool: true, want: "ObjectsNotReadable"},
		"a pool cannot":                  {unlisted: "TestPool", replicas: 1, pool: true, want: "ObjectsNotReadable"},
		"all kinds of a pool are listed": {replicas: 1, pool: true},
		"another kind cannot be listed":  {unlisted: "OtherMachine", replicas: 1},
		"a kind is not installed":        {missing: "TestMachine", replicas: 1},
		"a pool has no infrastructure":   {missing: "p", replicas: 1, pool: true},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "fleet", Name: "general-1", Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}
			ref := func(kind string) clusterv1.ContractVersionedObjectReference {
				return clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureKind.Group, Kind: kind, Name: "p"}
			}
			deployment, pool := &clusterv1.MachineDeployment{ObjectMeta: meta}, &clusterv1.MachinePool{ObjectMeta: meta}
			deployment.Spec.Replicas, pool.Spec.Replicas = &tc.replicas, &tc.replicas
			deployment.Status.Replicas = &tc.machines
			deployment.Spec.Template.Spec.InfrastructureRef, pool.Spec.Template.Spec.InfrastructureRef = ref("TestMachineTemplate"), ref("TestPool")
			deployment.Spec.Template.Spec.Bootstrap.ConfigRef = ref("TestConfigTemplate")
			infrastructure := named(infrastructureKind.GroupVersion().WithKind("TestPool"), "p")
			infrastructure.Object["status"] = map[string]any{"infrastructureMachineKind": "TestMachine"}
			objects := []client.Object{newTemplate(), lo.Ternary[client.Object](tc.pool, pool, deployment)}
			if tc.missing != infrastructure.GetName() {
				objects = append(objects, infrastructure)
			}
			for _, plural := range []string{"testmachines", "testconfigs", "testpools"} {
				crd := named(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, plural+".infrastructure.cluster.x-k8s.io")
				crd.SetNamespace("")
				crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
				if plural != strings.ToLower(tc.missing)+"s" {
					objects = append(objects, crd)
				}
			}
			for _, kind := range []string{"TestMachine", "TestConfig"} {
				objects = append(objects, named(infrastructureKind.GroupVersion().WithKind(kind), "m"))
			}
			c := newCell(objects...)
			answer := error(reference.Unlisted{Kind: schema.GroupKind{Group: infrastructureKind.Group, Kind: tc.unlisted}})
			c.fails = func(verb string, object any, _ string) error {
				if list, ofProvider := object.(*unstructured.UnstructuredList); verb == "list" && ofProvider && list.GetKind() == tc.unlisted+"List" {
					return answer
				}
				return nil
			}
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}
			result, err := c.Reconcile(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			condition := func() *status.Condition {
				template := &v1alpha1.KarpenterMachineTemplate{}
				if err := c.Get(t.Context(), request.NamespacedName, template); err != nil {
					t.Fatal(err)
				}
				if ready := template.StatusConditions().Get(v1alpha1.ConditionInfrastructureReady); !ready.IsTrue() {
					t.Errorf("the infrastructure is not ready: %+v", ready)
				}
				return template.StatusConditions().Get(v1alpha1.ConditionMachinesProgressing)
			}
			got := condition()
			if tc.want == "" {
				if !got.IsTrue() {
					t.Errorf("got %+v, want True", got)
				}
				return
			}
			if !got.IsUnknown() || got.Reason != tc.want || !strings.Contains(got.Message, "kind "+tc.unlisted+".infrastructure.cluster.x-k8s.io cannot be listed") {
				t.Errorf("got %+v, want Unknown with reason %s", got, tc.want)
			}
			if result.RequeueAfter == 0 || result.RequeueAfter > readAgain {
				t.Errorf("the kind is read again after %s, want at most %s", result.RequeueAfter, readAgain)
			}
			answer = errors.New("no answer")
			if _, err := c.Reconcile(t.Context(), request); !errors.Is(err, answer) {
				t.Errorf("got %v, want the error of any other failed read", err)
			}
			c.fails = nil
			if _, err := c.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if got := condition(); !got.IsTrue() {
				t.Errorf("got %+v after the right was given, want True", got)
			}
			// The operator has restarted, and the API server needs long for the list.
			awaited := reference.Unlisted{Kind: schema.GroupKind{Group: infrastructureKind.Group, Kind: tc.unlisted}, Awaited: true}
			c.fails = func(verb string, object any, _ string) error {
				if list, ofProvider := object.(*unstructured.UnstructuredList); verb == "list" && ofProvider && list.GetKind() == tc.unlisted+"List" {
					return awaited
				}
				return nil
			}
			if result, err = c.Reconcile(t.Context(), request); err != nil || result.RequeueAfter == 0 || result.RequeueAfter > readAgain {
				t.Errorf("got %v and %v, want to read the kind again after at most %s", result, err, readAgain)
			}
			if got := condition(); !got.IsTrue() {
				t.Errorf("got %+v while the list can still arrive, want what it was", got)
			}
		})
	}
}
