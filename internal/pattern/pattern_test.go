// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func ref(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: "test.cluster.x-k8s.io", Kind: kind, Name: name}
}

// deployment returns a MachineDeployment of a topology.
func deployment() *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "prod-md-0-x7k2p", Labels: map[string]string{
		clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md-0",
	}}}
	d.Spec.Replicas = new(int32(0))
	d.Spec.Selector.MatchLabels = map[string]string{clusterv1.ClusterNameLabel: "prod", "example.com/pool": "a"}
	d.Spec.Template.Labels = map[string]string{
		clusterv1.ClusterNameLabel: "prod", clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md-0",
		"karpenter.sh/nodepool": "other", v1alpha1.TemplateLabel: "other", v1alpha1.OtherMemberLabel: "", "example.com/pool": "a",
		"team": "platform", "node.cluster.x-k8s.io/disk": "ssd",
	}
	d.Spec.Template.Annotations = map[string]string{"cluster.x-k8s.io/skip-remediation": "", "machine.cluster.x-k8s.io/exclude-node-draining": ""}
	d.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: "prod", Version: "v1.36.3", FailureDomain: "1",
		Bootstrap: clusterv1.Bootstrap{ConfigRef: ref("ConfigTemplate", "prod-md-0-a")}, InfrastructureRef: ref("MachineTemplate", "prod-md-0-b"),
		MinReadySeconds: new(int32(30)), ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: "StorageReady"}},
		Deletion: clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: new(int32(60))},
		// The Nodes of a template have the taints of their NodePool.
		Taints: []clusterv1.MachineTaint{{Key: "gpu", Effect: "NoSchedule", Propagation: clusterv1.MachineTaintPropagationAlways}},
	}
	return d
}

func TestResolve(t *testing.T) {
	infrastructure := ref("MachineTemplate", "prod-md-0-b")
	taken := v1alpha1.MachineTemplate{
		Metadata: v1alpha1.MachineMetadata{
			Labels:      map[string]v1alpha1.LabelValue{"team": "platform", "node.cluster.x-k8s.io/disk": "ssd"},
			Annotations: map[string]string{"machine.cluster.x-k8s.io/exclude-node-draining": ""},
		},
		Spec: v1alpha1.MachineTemplateSpec{
			Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{ConfigRef: ref("ConfigTemplate", "prod-md-0-a")}, InfrastructureRef: &infrastructure,
			MinReadySeconds: new(int32(30)), ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: "StorageReady"}},
			Deletion: &clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: new(int32(60))},
		},
	}
	own := ref("MachineTemplate", "own")
	for name, tc := range map[string]struct {
		given  v1alpha1.MachineTemplate
		change func(want *v1alpha1.MachineTemplate)
	}{
		"all of it": {change: func(*v1alpha1.MachineTemplate) {}},
		"labels and annotations of its own": {
			given: v1alpha1.MachineTemplate{Metadata: v1alpha1.MachineMetadata{Labels: map[string]v1alpha1.LabelValue{"team": "data"}, Annotations: map[string]string{"a": "b"}}},
			change: func(want *v1alpha1.MachineTemplate) {
				want.Metadata.Labels["team"], want.Metadata.Annotations["a"] = "data", "b"
			},
		},
		"a Secret instead of a bootstrap template": {
			given: v1alpha1.MachineTemplate{Spec: v1alpha1.MachineTemplateSpec{Bootstrap: clusterv1.Bootstrap{DataSecretName: new("own")}}},
			change: func(want *v1alpha1.MachineTemplate) {
				want.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("own")}
			},
		},
		"settings of its own": {
			given: v1alpha1.MachineTemplate{Spec: v1alpha1.MachineTemplateSpec{
				Version: "v1.36.2", InfrastructureRef: &own, MinReadySeconds: new(int32(0)), Deletion: &clusterv1.MachineDeletionSpec{},
				ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: "Own"}},
			}},
			change: func(want *v1alpha1.MachineTemplate) {
				want.Spec.Version, want.Spec.InfrastructureRef, want.Spec.MinReadySeconds = "v1.36.2", &own, new(int32(0))
				want.Spec.Deletion, want.Spec.ReadinessGates = &clusterv1.MachineDeletionSpec{}, []clusterv1.MachineReadinessGate{{ConditionType: "Own"}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := &v1alpha1.KarpenterMachineTemplate{}
			template.Spec.Template = tc.given
			template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"}
			observed := Observe(deployment())
			template.Status.From = &observed.ObservedMachineTemplate
			stored := template.DeepCopy()
			want := taken.DeepCopy()
			want.From = template.Spec.Template.From
			tc.change(want)
			Resolve(template, observed)
			if diff := cmp.Diff(*want, template.Spec.Template); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			Resolve(template, observed)
			if diff := cmp.Diff(*want, template.Spec.Template); diff != "" {
				t.Errorf("a second time (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(stored.Status, template.Status); diff != "" {
				t.Errorf("the status (-want +got):\n%s", diff)
			}
		})
	}
}

// A template that follows nothing stays as it is, whatever its status has.
func TestResolveWithoutFrom(t *testing.T) {
	observed := Observe(deployment())
	template := &v1alpha1.KarpenterMachineTemplate{Status: v1alpha1.KarpenterMachineTemplateStatus{From: &observed.ObservedMachineTemplate}}
	Resolve(template, observed)
	if diff := cmp.Diff(v1alpha1.MachineTemplate{}, template.Spec.Template); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if template.FromHash() != "" || Pending(template) {
		t.Error("the template follows a MachineDeployment")
	}
}

// A template takes nothing from a MachineDeployment that cannot be used, or that has other content than what was examined.
func TestPending(t *testing.T) {
	examined := Observe(deployment())
	changed := deployment()
	changed.Spec.Template.Spec.Version = "v1.36.4"
	renamed := deployment()
	renamed.Name = "prod-md-0-q9w8e"
	for name, tc := range map[string]struct {
		status *v1alpha1.ObservedMachineTemplate
		now    *Taken
		want   bool
	}{
		"examined":                        {&examined.ObservedMachineTemplate, Observe(deployment()), false},
		"never examined":                  {nil, examined, true},
		"never found":                     {nil, nil, true},
		"it cannot be used":               {&examined.ObservedMachineTemplate, nil, true},
		"it has changed":                  {&examined.ObservedMachineTemplate, Observe(changed), true},
		"another one of the same content": {&examined.ObservedMachineTemplate, Observe(renamed), true},
	} {
		t.Run(name, func(t *testing.T) {
			template := &v1alpha1.KarpenterMachineTemplate{}
			template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"}
			template.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"own": "x"}
			template.Status.From = tc.status
			spec := template.Spec.DeepCopy()
			Resolve(template, tc.now)
			if got := Pending(template); got != tc.want {
				t.Errorf("pending: got %t, want %t", got, tc.want)
			}
			if diff := cmp.Diff(*spec, template.Spec); (diff == "") != tc.want {
				t.Errorf("the spec (-want +got):\n%s", diff)
			}
		})
	}
}

// Changed passes what changes the result of Observe or Problem, and nothing else.
func TestChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.MachineDeployment)
		want   bool
	}{
		"its replicas":                {func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = new(int32(3)) }, false},
		"its status":                  {func(d *clusterv1.MachineDeployment) { d.Status.Replicas = new(int32(3)) }, false},
		"its annotations":             {func(d *clusterv1.MachineDeployment) { d.Annotations = map[string]string{"a": "b"} }, false},
		"a failure domain":            {func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.FailureDomain = "2" }, false},
		"a label that is not taken":   {func(d *clusterv1.MachineDeployment) { d.Spec.Template.Labels["cluster.x-k8s.io/x"] = "y" }, false},
		"a label of its Machines":     {func(d *clusterv1.MachineDeployment) { d.Spec.Template.Labels["team"] = "data" }, true},
		"a label by which it selects": {func(d *clusterv1.MachineDeployment) { d.Spec.Selector.MatchLabels["team"] = "platform" }, true},
		"its version":                 {func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.4" }, true},
		"its infrastructure":          {func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = "c" }, true},
		"its bootstrap":               {func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "c" }, true},
		"a timeout":                   {func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Deletion = clusterv1.MachineDeletionSpec{} }, true},
		"its entry in the topology": {func(d *clusterv1.MachineDeployment) {
			d.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] = "md-1"
		}, true},
		"a deletion":                   {func(d *clusterv1.MachineDeployment) { d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		"the label of a generated one": {func(d *clusterv1.MachineDeployment) { d.Labels[v1alpha1.TemplateLabel] = "general" }, true},
		"an adoption, which sets both": {adopt, false},
		"a deletion timeout it did have": {func(d *clusterv1.MachineDeployment) {
			d.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(61))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := deployment()
			tc.change(after)
			if got := Changed().Update(event.UpdateEvent{ObjectOld: deployment(), ObjectNew: after}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func adopt(d *clusterv1.MachineDeployment) {
	d.Labels[v1alpha1.TemplateLabel] = "general"
	d.Annotations = map[string]string{v1alpha1.AdoptedAnnotation: "2026-01-01T00:00:00Z"}
}

func TestFind(t *testing.T) {
	unowned, deleting, plain := deployment(), deployment(), deployment()
	delete(unowned.Labels, clusterv1.ClusterTopologyOwnedLabel)
	unowned.Name, plain.Name = "unowned", "workers"
	plain.Labels = nil
	deleting.Name, deleting.DeletionTimestamp = "a-deleting", &metav1.Time{Time: time.Unix(1, 0)}
	all := []clusterv1.MachineDeployment{*unowned, *deleting, *deployment(), *plain}
	for name, tc := range map[string]struct {
		from *v1alpha1.MachineTemplateSource
		want string
	}{
		"none":                      {},
		"by name":                   {&v1alpha1.MachineTemplateSource{MachineDeployment: "workers"}, "workers"},
		"by name, of a topology":    {&v1alpha1.MachineTemplateSource{MachineDeployment: "prod-md-0-x7k2p"}, "prod-md-0-x7k2p"},
		"by entry of the topology":  {&v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"}, "prod-md-0-x7k2p"},
		"by entry, but not by name": {&v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "workers"}, ""},
		"one that does not exist":   {&v1alpha1.MachineTemplateSource{MachineDeployment: "md-0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			template := &v1alpha1.KarpenterMachineTemplate{}
			template.Spec.Template.From = tc.from
			got := ""
			if found := Find(template, all); found != nil {
				got = found.Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Clusters have this hash stored. See TestHashesOfAFixedTemplate in package generate for what to do if this test fails.
func TestHashOfAFixedPattern(t *testing.T) {
	fixed := &clusterv1.MachineDeployment{}
	fixed.Spec.Template.Labels = map[string]string{"team": "platform"}
	fixed.Spec.Template.Spec.Version = "v1.36.3"
	fixed.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "workers"}
	if got, want := Observe(fixed).Hash, "v1-62791de4f9a42e6aca1a0a11bae1f136"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
