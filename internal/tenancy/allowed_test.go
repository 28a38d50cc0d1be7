// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"errors"
	"strings"
	"testing"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var served = types.NamespacedName{Namespace: "fleet", Name: "served"}

const withSecret = `{template: {spec: {files: [{contentFrom: {secret: {name: join, key: value}}}]}}}`

// kubeadm returns a KubeadmConfigTemplate.
func kubeadm(t *testing.T, text string, labels map[string]string, owners ...string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec(t, text)}}
	object.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta2")
	object.SetKind("KubeadmConfigTemplate")
	object.SetNamespace(served.Namespace)
	object.SetName("workers")
	object.SetLabels(labels)
	object.SetOwnerReferences(lo.Map(owners, func(name string, _ int) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name}
	}))
	return object
}

// controlledBy adds a controller of a kind, unless it is empty.
func controlledBy(object *unstructured.Unstructured, kind string) *unstructured.Unstructured {
	if kind != "" {
		object.SetOwnerReferences(append(object.GetOwnerReferences(),
			metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: "controller", Controller: new(true)}))
	}
	return object
}

// deployment returns a MachineDeployment of a Cluster that refers to KubeadmConfigTemplate workers.
func deployment(cluster string, change func(*clusterv1.MachineDeployment)) Resource {
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "d"}}
	d.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: cluster, Bootstrap: clusterv1.Bootstrap{
		ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "workers"},
	}}
	if change != nil {
		change(d)
	}
	return Resource{Object: d, Machine: d.Spec.Template.Spec}
}

func allowedBy(t *testing.T, secrets, bases string, base *unstructured.Unstructured, resources ...Resource) Allowed {
	t.Helper()
	rules, err := Parse(secrets, bases, "")
	if err != nil {
		t.Fatal(err)
	}
	allowed := Allowed{Cluster: served, Rules: rules, Own: NewOwn()}
	for _, resource := range resources {
		if resource.IsOwn(served) {
			allowed.Own.AddResource(resource)
		}
	}
	allowed.Own.AddTemplate(base, served)
	return allowed
}

// check compares the reason of an error, and looks for texts in it.
func check(t *testing.T, err error, reason string, texts ...string) {
	t.Helper()
	refused := NotAllowed{}
	if errors.As(err, &refused); refused.Reason != reason || (err == nil) != (reason == "") {
		t.Fatalf("got %v, want the reason %q", err, reason)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %q, want it to contain %q", err, text)
		}
	}
}

func TestSecretOfABase(t *testing.T) {
	cluster := func(name string) map[string]string { return map[string]string{clusterv1.ClusterNameLabel: name} }
	for name, tc := range map[string]struct {
		labels     map[string]string
		owners     []string
		controller string
		rules      string
		resources  []Resource
		allowed    bool
	}{
		"nobody uses it":                                          {},
		"it has the label of the Cluster":                         {labels: cluster("served"), allowed: true},
		"it has the label of another Cluster":                     {labels: cluster("other")},
		"the operator generated it":                               {labels: map[string]string{clusterv1.ClusterNameLabel: "served", v1alpha1.TemplateLabel: "general"}},
		"it is of the control plane":                              {labels: map[string]string{clusterv1.ClusterNameLabel: "served", clusterv1.MachineControlPlaneLabel: ""}},
		"it is the infrastructure of the Cluster":                 {labels: cluster("served"), controller: "Cluster"},
		"it was created for a Machine":                            {labels: cluster("served"), controller: "Machine"},
		"only an owner, which Cluster API sets":                   {owners: []string{"served"}},
		"a MachineDeployment of the Cluster":                      {resources: []Resource{deployment("served", nil)}, allowed: true},
		"also with the label of another Cluster, which shares it": {labels: cluster("other"), resources: []Resource{deployment("served", nil)}, allowed: true},
		"one of another Cluster":                                  {resources: []Resource{deployment("other", nil)}},
		"one of another Cluster with an edited label": {resources: []Resource{deployment("other", func(d *clusterv1.MachineDeployment) {
			d.Labels = cluster("served")
		})}},
		"one of another namespace": {resources: []Resource{deployment("served", func(d *clusterv1.MachineDeployment) {
			d.Namespace = "other"
		})}},
		"a generated one": {resources: []Resource{deployment("served", func(d *clusterv1.MachineDeployment) {
			d.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
		})}},
		"an adopted one": {allowed: true, resources: []Resource{deployment("served", func(d *clusterv1.MachineDeployment) {
			d.Labels, d.Annotations = map[string]string{v1alpha1.TemplateLabel: "general"}, map[string]string{v1alpha1.AdoptedAnnotation: "2026-01-01T00:00:00Z"}
		})}},
		"one with that Secret as bootstrap data": {allowed: true, resources: []Resource{deployment("served", func(d *clusterv1.MachineDeployment) {
			d.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("join")}
		})}},
		"the rules": {rules: "join", allowed: true},
	} {
		t.Run(name, func(t *testing.T) {
			base := controlledBy(kubeadm(t, withSecret, tc.labels, tc.owners...), tc.controller)
			err := allowedBy(t, tc.rules, "", base, tc.resources...).Generated(base, base)
			if tc.allowed {
				check(t, err, "")
				return
			}
			check(t, err, v1alpha1.ReasonSecretNotAllowed,
				"spec.template.spec.files[0].contentFrom.secret.name of KubeadmConfigTemplate workers names Secret join", "templates of Cluster fleet/served",
				"add join to the operator's --allowed-secrets, or give KubeadmConfigTemplate workers the label cluster.x-k8s.io/cluster-name=served")
		})
	}
}

func TestPatched(t *testing.T) {
	cluster := map[string]string{clusterv1.ClusterNameLabel: "served"}
	for name, tc := range map[string]struct {
		kind          string // KubeadmConfigTemplate if empty
		base, patched string
		reason        string
		texts         []string
	}{
		"a Secret of the base in another field": {base: withSecret, patched: `{template: {spec: {users: [{passwdFrom: {secret: {name: join}}}]}}}`},
		"another Secret": {
			base: withSecret, patched: `{template: {spec: {files: [{contentFrom: {secret: {name: other-kubeconfig, key: value}}}]}}}`,
			reason: v1alpha1.ReasonSecretNotAllowed, texts: []string{"names Secret other-kubeconfig"},
		},
		"a Secret of another namespace": {
			base: withSecret, patched: `{template: {spec: {userData: {name: join, namespace: other}}}}`,
			reason: v1alpha1.ReasonSecretNotAllowed, texts: []string{"names Secret other/join"},
		},
		"what the base has stays": {
			base:    `{template: {metadata: {labels: {cluster.x-k8s.io/control-plane: "", a: b}}, spec: {providerID: x, list: [{targetNamespace: other}]}}}`,
			patched: `{template: {metadata: {labels: {cluster.x-k8s.io/control-plane: "", a: c}}, spec: {providerID: x, list: [{}, {targetNamespace: other}]}}}`,
		},
		"the name and the namespace of the Cluster": {base: `{template: {}}`, patched: `{template: {spec: {clusterName: served, ref: {name: a, namespace: fleet}}}}`},
		"labels that are for Nodes":                 {base: `{template: {}}`, patched: `{template: {metadata: {labels: {node.cluster.x-k8s.io/a: b, team: c}}}}`},
		"a control plane": {
			base: `{template: {}}`, patched: `{template: {metadata: {labels: {cluster.x-k8s.io/control-plane: ""}}}}`,
			reason: v1alpha1.ReasonFieldNotAllowed, texts: []string{"patches of KubeadmConfigTemplate workers may not set spec.template.metadata.labels[cluster.x-k8s.io/control-plane]"},
		},
		"a hook": {
			base: `{template: {}}`, patched: `{template: {metadata: {annotations: {pre-terminate.delete.hook.machine.cluster.x-k8s.io/a: ""}}}}`,
			reason: v1alpha1.ReasonFieldNotAllowed,
		},
		"settings of a namespace": {base: `{template: {}}`, patched: `{template: {spec: {ipamNamespace: {create: true}}}}`},
		"settings of that name":   {base: `{template: {}}`, patched: `{template: {spec: {delays: {providerID: {duration: 1s}}}}}`},
		"an existing instance":    {base: `{template: {}}`, patched: `{template: {spec: {providerID: "aws:///a/i-1"}}}`, reason: v1alpha1.ReasonFieldNotAllowed, texts: []string{"spec.template.spec.providerID"}},
		"another instance":        {base: `{template: {spec: {instanceID: i-1}}}`, patched: `{template: {spec: {instanceID: i-2}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
		"another Cluster":         {base: `{template: {}}`, patched: `{template: {spec: {clusterName: other}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
		"another namespace":       {base: `{template: {}}`, patched: `{template: {spec: {pool: {name: a, namespace: other}}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
		"hardware of Tinkerbell":  {base: `{template: {}}`, patched: `{template: {spec: {hardwareName: rack-1}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
		"a machine of Proxmox":    {base: `{template: {}}`, patched: `{template: {spec: {virtualMachineID: 100}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
		"a host of Metal3": {
			base: `{template: {}}`, patched: `{template: {metadata: {annotations: {metal3.io/BareMetalHost: fleet/other}}}}`,
			reason: v1alpha1.ReasonFieldNotAllowed, texts: []string{"spec.template.metadata.annotations[metal3.io/BareMetalHost]"},
		},
		"a control plane of Talos": {base: `{template: {spec: {generateType: worker}}}`, patched: `{template: {spec: {generateType: controlplane}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
		"a configuration of kubeadm, which has a version and a kind": {
			base: `{template: {}}`, patched: `{template: {spec: {joinConfiguration: {apiVersion: kubeadm.k8s.io/v1beta4, kind: JoinConfiguration, nodeRegistration: {taints: []}}}}}`,
		},
		"a server of vSphere": {
			base: `{template: {spec: {server: vcenter, datacenter: a}}}`, patched: `{template: {spec: {server: evil.example.com, thumbprint: AA, datacenter: b}}}`,
			reason: v1alpha1.ReasonFieldNotAllowed, texts: []string{"spec.template.spec.server, spec.template.spec.thumbprint"},
		},
		"the server of the base":    {base: `{template: {spec: {server: vcenter, datacenter: a}}}`, patched: `{template: {spec: {server: vcenter, datacenter: b}}}`},
		"a folder of Docker":        {base: `{template: {}}`, patched: `{template: {spec: {extraMounts: [{hostPath: /var/run/docker.sock}]}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
		"a volume of a Pod":         {base: `{template: {}}`, patched: `{template: {spec: {podTemplate: {spec: {volumes: [{hostPath: {path: /}}]}}}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
		"a privileged container":    {base: `{template: {}}`, patched: `{template: {spec: {podTemplate: {spec: {containers: [{securityContext: {privileged: true}}]}}}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
		"an unprivileged container": {base: `{template: {}}`, patched: `{template: {spec: {podTemplate: {spec: {hostPID: false, containers: [{securityContext: {privileged: false}}]}}}}}`},
		"another kind than the template is for": {
			base: `{template: {}}`, patched: `{template: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine}}`,
			reason: v1alpha1.ReasonFieldNotAllowed, texts: []string{"may not set spec.template.apiVersion, spec.template.kind, "},
		},
		"the kind that the base names":      {base: `{template: {kind: KubeadmConfig}}`, patched: `{template: {kind: KubeadmConfig, spec: {a: b}}}`},
		"a pool, whose template is a field": {kind: "AzureMachinePool", base: `{}`, patched: `{template: {vmSize: large}}`},
		"an owner":                          {base: `{template: {}}`, patched: `{template: {spec: {vm: {metadata: {ownerReferences: [{kind: Cluster}]}}}}}`, reason: v1alpha1.ReasonFieldNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			base, patched := kubeadm(t, tc.base, cluster), kubeadm(t, tc.patched, nil)
			if tc.kind != "" {
				base.SetKind(tc.kind)
				patched.SetKind(tc.kind)
			}
			check(t, allowedBy(t, "", "", base).Generated(base, patched), tc.reason, tc.texts...)
		})
	}
}

func TestBase(t *testing.T) {
	for name, tc := range map[string]struct {
		labels     map[string]string
		owners     []string
		controller string
		rules      string
		resources  []Resource
		reason     string
	}{
		"of no Cluster":              {},
		"of the Cluster":             {labels: map[string]string{clusterv1.ClusterNameLabel: "served"}, owners: []string{"other"}},
		"of another, by its label":   {labels: map[string]string{clusterv1.ClusterNameLabel: "other"}, reason: v1alpha1.ReasonBaseTemplateNotAllowed},
		"shared with another":        {owners: []string{"other"}},
		"of both, by their owners":   {owners: []string{"other", "served"}},
		"of another, but used by it": {labels: map[string]string{clusterv1.ClusterNameLabel: "other"}, resources: []Resource{deployment("served", nil)}},
		"of another, but listed":     {labels: map[string]string{clusterv1.ClusterNameLabel: "other"}, rules: "KubeadmConfigTemplate/workers", reason: v1alpha1.ReasonBaseTemplateNotAllowed},
		"of the control plane":       {labels: map[string]string{clusterv1.ClusterNameLabel: "served", clusterv1.MachineControlPlaneLabel: ""}, reason: v1alpha1.ReasonBaseTemplateNotAllowed},
		"of a Machine":               {controller: "Machine", reason: v1alpha1.ReasonBaseTemplateNotAllowed},
		"of a MachinePool":           {controller: "MachinePool"},
		"listed":                     {rules: "KubeadmConfigTemplate/workers"},
		"not listed":                 {resources: []Resource{deployment("served", nil)}, rules: "AWSMachineTemplate/*", reason: v1alpha1.ReasonBaseTemplateNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			base := controlledBy(kubeadm(t, `{template: {}}`, tc.labels, tc.owners...), tc.controller)
			check(t, allowedBy(t, "", tc.rules, base, tc.resources...).Base(base), tc.reason,
				lo.Ternary(tc.reason == "", nil, []string{"KubeadmConfigTemplate workers", "base template"})...)
		})
	}
}

func TestBootstrap(t *testing.T) {
	allowed := allowedBy(t, "workers-*", "", kubeadm(t, `{}`, nil))
	allowed.Own.Labelled.Insert("labelled")
	check(t, allowed.Bootstrap(""), "")
	check(t, allowed.Bootstrap("workers-1"), "")
	check(t, allowed.Bootstrap("labelled"), "")
	check(t, allowed.Bootstrap("other-kubeconfig"), v1alpha1.ReasonSecretNotAllowed, "spec.template.spec.bootstrap.dataSecretName names Secret other-kubeconfig")
}

// Who writes templates cannot list Secrets of the management cluster, and learns no names of others from a message.
func TestMessageNamesNoOtherSecret(t *testing.T) {
	cluster := map[string]string{clusterv1.ClusterNameLabel: "served"}
	base := kubeadm(t, withSecret, cluster)
	allowed := allowedBy(t, "workers-*,registry", "", base, deployment("served", func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("userdata")}
	}))
	allowed.Own.Labelled.Insert("labelled")
	patched := kubeadm(t, `{template: {spec: {files: [{contentFrom: {secret: {name: other-kubeconfig, key: value}}}]}}}`, cluster)
	for name, err := range map[string]error{
		"bootstrap data": allowed.Bootstrap("other-kubeconfig"),
		"a patch":        allowed.Generated(base, patched),
	} {
		t.Run(name, func(t *testing.T) {
			check(t, err, v1alpha1.ReasonSecretNotAllowed, "names Secret other-kubeconfig")
			if !strings.HasSuffix(err.Error(), "add other-kubeconfig to the operator's --allowed-secrets") {
				t.Errorf("got %q, which advises a label of a base that does not name the Secret", err)
			}
			for _, secret := range []string{"join", "userdata", "labelled", "registry", "workers-"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("got %q, which names Secret %s", err, secret)
				}
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	labels := func(key string) v1alpha1.KarpenterMachineTemplateSpec {
		return v1alpha1.KarpenterMachineTemplateSpec{Template: v1alpha1.MachineTemplate{Metadata: v1alpha1.MachineMetadata{Labels: map[string]v1alpha1.LabelValue{key: "x"}}}}
	}
	annotations := func(key string) v1alpha1.KarpenterMachineTemplateSpec {
		return v1alpha1.KarpenterMachineTemplateSpec{Template: v1alpha1.MachineTemplate{Metadata: v1alpha1.MachineMetadata{Annotations: map[string]string{key: "x"}}}}
	}
	// This is how Cluster API sets the label.
	withoutValue := v1alpha1.KarpenterMachineTemplateSpec{Template: v1alpha1.MachineTemplate{Metadata: v1alpha1.MachineMetadata{Labels: map[string]v1alpha1.LabelValue{clusterv1.MachineControlPlaneLabel: ""}}}}
	onResource := func(key string) v1alpha1.KarpenterMachineTemplateSpec {
		return v1alpha1.KarpenterMachineTemplateSpec{ScalableResource: v1alpha1.ScalableResource{Annotations: map[string]string{key: "x"}}}
	}
	for name, tc := range map[string]struct {
		template v1alpha1.KarpenterMachineTemplateSpec
		refused  bool
	}{
		"a label of the user":                 {template: labels("team")},
		"a label of another domain":           {template: labels("example.com/cluster.x-k8s.io")},
		"a domain that ends like Cluster API": {template: labels("my-cluster.x-k8s.io/a")},
		"a label of no domain":                {template: labels("karpenter.sh")},
		"labels of Nodes":                     {template: labels("node.cluster.x-k8s.io/a")},
		"the control plane":                   {template: labels(clusterv1.MachineControlPlaneLabel), refused: true},
		"the Cluster":                         {template: labels(clusterv1.ClusterNameLabel), refused: true},
		"the control plane, with no value":    {template: withoutValue, refused: true},
		"a MachineSet":                        {template: labels(clusterv1.MachineSetNameLabel), refused: true},
		"a MachinePool":                       {template: labels(clusterv1.MachinePoolNameLabel), refused: true},
		"a topology":                          {template: labels(clusterv1.ClusterTopologyOwnedLabel), refused: true},
		"another instance of Cluster API":     {template: labels(clusterv1.WatchLabel), refused: true},
		"clusterctl move":                     {template: labels("clusterctl.cluster.x-k8s.io/move"), refused: true},
		"the link to a NodeClaim":             {template: labels(v1alpha1.NodeClaimUIDLabel), refused: true},
		"the labels of Karpenter":             {template: labels("karpenter.sh/nodepool"), refused: true},

		"a label of Metal3": {template: labels("metal3.io/uuid"), refused: true},

		"an annotation of the user":      {template: annotations("note")},
		"an annotation of Karpenter":     {template: annotations("karpenter.sh/do-not-disrupt")},
		"no drain":                       {template: annotations(clusterv1.ExcludeNodeDrainingAnnotation)},
		"a host of Metal3":               {template: annotations("metal3.io/BareMetalHost"), refused: true},
		"a pause":                        {template: annotations(clusterv1.PausedAnnotation), refused: true},
		"another manager":                {template: annotations(clusterv1.ManagedByAnnotation), refused: true},
		"no remediation":                 {template: annotations(clusterv1.MachineSkipRemediationAnnotation), refused: true},
		"a hook":                         {template: annotations(clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/mine"), refused: true},
		"the operator's hook":            {template: annotations(v1alpha1.DrainHookAnnotation), refused: true},
		"where it was cloned from":       {template: annotations(clusterv1.TemplateClonedFromNameAnnotation), refused: true},
		"an update in place":             {template: annotations(clusterv1.UpdateInProgressAnnotation), refused: true},
		"a deletion of clusterctl":       {template: annotations("clusterctl.cluster.x-k8s.io/delete-for-move"), refused: true},
		"the mark of the operator":       {template: annotations(v1alpha1.MarkedForDeletionAtAnnotation), refused: true},
		"preflight checks of resources":  {template: onResource(clusterv1.MachineSetSkipPreflightChecksAnnotation)},
		"any annotation of resources":    {template: onResource("example.com/a")},
		"an adoption":                    {template: onResource(v1alpha1.AdoptedAnnotation), refused: true},
		"replicas of another controller": {template: onResource(clusterv1.ReplicasManagedByAnnotation), refused: true},
		"the revision of Cluster API":    {template: onResource(clusterv1.RevisionAnnotation), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			reason := lo.Ternary(tc.refused, v1alpha1.ReasonFieldNotAllowed, "")
			check(t, Allowed{Cluster: served, Own: NewOwn()}.Metadata(&tc.template), reason)
		})
	}
}

// What the MachineDeployment has that a template follows was decided in the management cluster. A status that
// was forged in the workload cluster is not.
func TestMetadataOfThePattern(t *testing.T) {
	hook := clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/backup"
	template := &v1alpha1.KarpenterMachineTemplateSpec{Template: v1alpha1.MachineTemplate{Metadata: v1alpha1.MachineMetadata{Annotations: map[string]string{hook: "team-a"}}}}
	allowed := Allowed{Cluster: served, Own: NewOwn()}
	check(t, allowed.Metadata(template), v1alpha1.ReasonFieldNotAllowed, "spec.template.metadata.annotations may not contain "+hook)
	allowed.Pattern = clusterv1.ObjectMeta{Annotations: map[string]string{hook: "team-a"}}
	check(t, allowed.Metadata(template), "")
	allowed.Pattern.Annotations[hook] = "team-b"
	check(t, allowed.Metadata(template), v1alpha1.ReasonFieldNotAllowed)
}
