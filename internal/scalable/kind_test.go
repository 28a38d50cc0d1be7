// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func TestAccepts(t *testing.T) {
	type settings = v1alpha1.ScalableResource
	deployments, pools := settings{}, settings{Kind: v1alpha1.ScalableResourceKindMachinePool}
	losing := settings{Kind: v1alpha1.ScalableResourceKindMachinePool, AllowNodeLoss: true}
	const ofMachines, ofPool = `{template: {spec: {}}}`, `{location: eastus}`
	for name, tc := range map[string]struct {
		settings   settings
		kind, spec string
		owner      string
		want       string // a part of the error; empty for none
	}{
		"a template of machines":                  {deployments, "AWSMachineTemplate", ofMachines, "", ""},
		"not a template":                          {deployments, "AWSMachine", `{instanceType: x}`, "", "AWSMachine clusters/workers is not a template: name a kind that ends in Template"},
		"a template of a pool, for Machines":      {deployments, "DockerMachinePoolTemplate", ofMachines, "", "DockerMachinePoolTemplate clusters/workers is for MachinePools: name a template of machines, or set spec.scalableResource.kind to MachinePool"},
		"a pool whose spec has a template":        {deployments, "AzureMachinePool", `{template: {}}`, "", "is for MachinePools"},
		"a template of machines, for MachinePool": {pools, "AWSMachineTemplate", ofMachines, "", "AWSMachineTemplate clusters/workers is not for MachinePools: name a machine pool or a template of one, or set spec.scalableResource.kind to MachineDeployment"},
		"a template of a pool":                    {pools, "DockerMachinePoolTemplate", ofMachines, "", ""},
		"an empty template of a pool":             {pools, "DockerMachinePoolTemplate", `{}`, "", ""},
		"a template of a pool that is no object":  {pools, "DockerMachinePoolTemplate", `{template: x}`, "", "DockerMachinePoolTemplate clusters/workers is not a template: .spec.template accessor error"},
		"a pool that nothing owns":                {pools, "AzureMachinePool", ofPool, "", ""},
		"a pool that is in use":                   {pools, "AzureMachinePool", ofPool, "mine", "AzureMachinePool clusters/workers is in use by MachinePool mine: create another one without an owner for this template"},
		"a template that something owns":          {pools, "DockerMachinePoolTemplate", ofMachines, "mine", ""},
		"a pool that loses Nodes":                 {pools, "AWSMachinePool", ofPool, "", "AWSMachinePool clusters/workers: the infrastructure provider of AWSMachinePools deletes any machine when replicas are lowered, even one that is in use: use MachineDeployments, or set spec.scalableResource.allowNodeLoss"},
		"a template of one that loses Nodes":      {pools, "GCPManagedMachinePoolTemplate", ofMachines, "", "of GCPManagedMachinePools deletes any machine"},
		"a kind of Cluster API":                   {deployments, "MachineTemplate.cluster.x-k8s.io", ofMachines, "", "MachineTemplate clusters/workers is of API group cluster.x-k8s.io: name a kind of infrastructure.cluster.x-k8s.io"},
		"another MachineDeployment":               {deployments, "MachineDeployment.cluster.x-k8s.io", ofMachines, "", "is of API group cluster.x-k8s.io"},
		"a template of bootstrap data":            {deployments, "KubeadmConfigTemplate.bootstrap.cluster.x-k8s.io", ofMachines, "", "is of API group bootstrap.cluster.x-k8s.io"},
		"a group below that of providers":         {deployments, "AWSMachineTemplate.my.infrastructure.cluster.x-k8s.io", ofMachines, "", "is of API group my.infrastructure.cluster.x-k8s.io"},
		"another MachinePool":                     {pools, "MachinePool.cluster.x-k8s.io", ofMachines, "", "is of API group cluster.x-k8s.io"},
		"a template of a Cluster":                 {deployments, "AWSClusterTemplate", ofMachines, "", "AWSClusterTemplate clusters/workers is no template of machines: name a kind that ends in MachineTemplate"},
		"a template of a control plane":           {deployments, "EKSControlPlaneTemplate", ofMachines, "", "is no template of machines"},
		"an instance of a pool":                   {pools, "AzureMachinePoolMachine", ofPool, "", "AzureMachinePoolMachine clusters/workers is not for MachinePools"},
		"a pool that may lose Nodes":              {losing, "AWSMachinePool", ofPool, "", ""},
		"one that may, and is in use":             {losing, "AWSMachinePool", ofPool, "mine", "is in use by MachinePool mine"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, group, _ := strings.Cut(tc.kind, ".")
			base := fixture.Base(t, kind, tc.spec)
			if group != "" {
				base.SetAPIVersion(group + "/v1beta2")
			}
			if tc.owner != "" {
				base.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: tc.owner, Controller: new(true)}})
			}
			err := KindOf(tc.settings).Accepts(base, tc.settings)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// The providers of some kinds ignore which Machine is to be deleted.
func TestPoolsThatLoseNodes(t *testing.T) {
	losing := v1alpha1.ScalableResource{Kind: v1alpha1.ScalableResourceKindMachinePool, AllowNodeLoss: true}
	careful := v1alpha1.ScalableResource{Kind: v1alpha1.ScalableResourceKindMachinePool}
	for kind, loses := range map[string]bool{
		"AWSMachinePool": true, "AWSManagedMachinePool": true,
		"AzureMachinePool": false, "AzureManagedMachinePool": true,
		"DockerMachinePool": false, "GCPManagedMachinePool": true,
		"OCIMachinePool": true, "OCIManagedMachinePool": true, "OCIVirtualMachinePool": true,
		"OwnMachinePool": false,
	} {
		t.Run(kind, func(t *testing.T) {
			base := fixture.Base(t, kind, `{}`)
			if err := KindOf(careful).Accepts(base, careful); (err != nil) != loses || loses && !strings.Contains(err.Error(), "of "+kind+"s deletes any machine") {
				t.Errorf("got %v, want it refused: %t", err, loses)
			}
			if err := KindOf(losing).Accepts(base, losing); err != nil {
				t.Errorf("with allowNodeLoss: got %v", err)
			}
		})
	}
}

// Bootstrap configurations are made from templates of bootstrap providers.
func TestAcceptsBootstrap(t *testing.T) {
	const template = `{template: {spec: {}}}`
	for name, tc := range map[string]struct{ kind, apiVersion, spec, want string }{
		"a template":             {"KubeadmConfigTemplate", "bootstrap.cluster.x-k8s.io/v1beta2", template, ""},
		"an empty one":           {"KubeadmConfigTemplate", "bootstrap.cluster.x-k8s.io/v1beta2", `{}`, ""},
		"one that is no object":  {"KubeadmConfigTemplate", "bootstrap.cluster.x-k8s.io/v1beta2", `{template: x}`, "KubeadmConfigTemplate clusters/workers is not a template: .spec.template accessor error"},
		"a configuration":        {"KubeadmConfig", "bootstrap.cluster.x-k8s.io/v1beta2", template, "KubeadmConfig clusters/workers is not a template: name a kind that ends in Template"},
		"a template of machines": {"AWSMachineTemplate", "infrastructure.cluster.x-k8s.io/v1beta2", template, "is of API group infrastructure.cluster.x-k8s.io: name a kind of bootstrap.cluster.x-k8s.io"},
		"a MachineDeployment":    {"MachineDeployment", "cluster.x-k8s.io/v1beta2", template, "is of API group cluster.x-k8s.io"},
		"one of a control plane": {"KubeadmControlPlaneTemplate", "controlplane.cluster.x-k8s.io/v1beta2", template, "is of API group controlplane.cluster.x-k8s.io"},
	} {
		t.Run(name, func(t *testing.T) {
			base := fixture.Base(t, tc.kind, tc.spec)
			base.SetAPIVersion(tc.apiVersion)
			err := AcceptsBootstrap(base)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	of := map[string]*clusterv1.Machine{"MachineDeployment": {}, "MachinePool": {}}
	of["MachineDeployment"].Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: "x"}
	of["MachinePool"].Labels = map[string]string{clusterv1.MachinePoolNameLabel: "x"}
	for _, kind := range Kinds() {
		if got := KindOf(v1alpha1.ScalableResource{Kind: kind.Name()}); got != kind {
			t.Errorf("%s is the kind %s", kind.Name(), got.Name())
		}
		if got := KindOfMachine(of[string(kind.Name())]); got != kind {
			t.Errorf("a Machine of a %s counts as one of a %s", kind.Name(), got.Name())
		}
	}
	if got := KindOf(v1alpha1.ScalableResource{}).Name(); got != v1alpha1.ScalableResourceKindMachineDeployment {
		t.Errorf("without a kind it is %s", got)
	}
	for from, want := range map[string]string{"DockerMachinePoolTemplate": "DockerMachinePool", "AWSMachinePool": "AWSMachinePool"} {
		gvk := fixture.Infrastructure().GroupVersionKind()
		gvk.Kind = from
		if got := (machinePools{}).MadeOf(gvk); got.Kind != want || got.GroupVersion() != gvk.GroupVersion() {
			t.Errorf("a %s is generated from a %s", got, from)
		}
	}
}

// The time of a MachinePool's replicas is that of their last change. Setting the same replicas
// again does not change it.
func TestSetReplicas(t *testing.T) {
	pool, deployment := New(&clusterv1.MachinePool{}), New(&clusterv1.MachineDeployment{})
	for _, step := range []struct {
		replicas int32
		at, want time.Time
	}{
		{0, fixture.Noon, fixture.Noon}, // none were written before
		{0, fixture.Noon.Add(time.Minute), fixture.Noon},
		{2, fixture.Noon.Add(2 * time.Minute), fixture.Noon.Add(2 * time.Minute)},
		{2, fixture.Noon.Add(3 * time.Minute), fixture.Noon.Add(2 * time.Minute)},
		{1, fixture.Noon.Add(4 * time.Minute), fixture.Noon.Add(4 * time.Minute)},
	} {
		for _, resource := range []*Resource{pool, deployment} {
			resource.SetReplicas(step.replicas, step.at)
			if !resource.HasReplicas() || resource.Replicas() != step.replicas {
				t.Errorf("%s: got %d replicas, want %d", resource.Kind().Name(), resource.Replicas(), step.replicas)
			}
		}
		if got := ReplicasSetAt(pool); !got.Equal(step.want) {
			t.Errorf("%d replicas at %s: got the time %s, want %s", step.replicas, step.at, got, step.want)
		}
	}
	if annotations := deployment.GetAnnotations(); len(annotations) > 0 {
		t.Errorf("a MachineDeployment has annotations %v", annotations)
	}
	pool.SetCreationTimestamp(metav1.NewTime(fixture.Noon))
	pool.SetAnnotations(map[string]string{v1alpha1.ReplicasSetAtAnnotation: "yesterday"})
	if got := ReplicasSetAt(pool); !got.Equal(fixture.Noon) {
		t.Errorf("an invalid time: got %s, want that of the creation", got)
	}
}
