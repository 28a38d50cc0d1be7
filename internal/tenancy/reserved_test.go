// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// infrastructure returns a base template or machine pool of an infrastructure provider.
func infrastructure(t *testing.T, kind, text string) *unstructured.Unstructured {
	t.Helper()
	object := kubeadm(t, text, nil)
	object.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	object.SetKind(kind)
	return object
}

// Patches give no machine an identity, a place in another network, or something that exists. Each field is one of a
// template of a provider that exists.
func TestFieldsOfProviders(t *testing.T) {
	const empty = `{template: {spec: {}}}`
	for name, tc := range map[string]struct {
		kind, base, patched string
		options             string // --reserved-fields
		want                string // the field that the message names; empty if all is allowed
	}{
		"a profile of AWS":                            {"AWSMachineTemplate", empty, `{template: {spec: {iamInstanceProfile: admin}}}`, "", "spec.template.spec.iamInstanceProfile"},
		"another profile":                             {"AWSMachineTemplate", `{template: {spec: {iamInstanceProfile: nodes}}}`, `{template: {spec: {iamInstanceProfile: admin}}}`, "", "spec.template.spec.iamInstanceProfile"},
		"the profile of the base":                     {"AWSMachineTemplate", `{template: {spec: {iamInstanceProfile: nodes}}}`, `{template: {spec: {iamInstanceProfile: nodes, instanceType: m5.large}}}`, "", ""},
		"a security group":                            {"AWSMachineTemplate", empty, `{template: {spec: {additionalSecurityGroups: [{id: sg-1}]}}}`, "", "spec.template.spec.additionalSecurityGroups"},
		"a second security group":                     {"AWSMachineTemplate", `{template: {spec: {additionalSecurityGroups: [{id: sg-1}]}}}`, `{template: {spec: {additionalSecurityGroups: [{id: sg-1}, {id: sg-2}]}}}`, "", "spec.template.spec.additionalSecurityGroups"},
		"a role of a node group":                      {"AWSManagedMachinePool", `{}`, `{roleName: admin}`, "", "spec.roleName"},
		"another node group":                          {"AWSManagedMachinePool", `{}`, `{eksNodegroupName: theirs}`, "", "spec.eksNodegroupName"},
		"another launch template":                     {"AWSMachinePool", `{awsLaunchTemplate: {instanceType: m5.large}}`, `{awsLaunchTemplate: {instanceType: m5.large, name: theirs}}`, "", "spec.awsLaunchTemplate.name"},
		"no boundary of rights":                       {"AWSManagedMachinePool", `{rolePermissionsBoundary: b}`, `{}`, "", "spec.rolePermissionsBoundary"},
		"an identity of Azure":                        {"AzureMachineTemplate", empty, `{template: {spec: {identity: SystemAssigned}}}`, "", "spec.template.spec.identity"},
		"a role of Azure":                             {"AzureMachinePool", `{}`, `{systemAssignedIdentityRole: {scope: /subscriptions/1}}`, "", "spec.systemAssignedIdentityRole"},
		"an extension of Azure":                       {"AzureMachinePool", `{template: {vmSize: a}}`, `{template: {vmSize: a, vmExtensions: [{name: x}]}}`, "", "spec.template.vmExtensions"},
		"another agent pool":                          {"AzureManagedMachinePool", `{}`, `{name: system}`, "", "spec.name"},
		"an agent pool in a template":                 {"AzureManagedMachinePoolTemplate", empty, `{template: {spec: {name: system}}}`, "", "spec.template.spec.name"},
		"a service account of Google Cloud":           {"GCPMachineTemplate", empty, `{template: {spec: {serviceAccounts: {email: admin@x}}}}`, "", "spec.template.spec.serviceAccounts"},
		"no service account":                          {"GCPMachineTemplate", `{template: {spec: {serviceAccounts: {email: nodes@x}}}}`, empty, "", "spec.template.spec.serviceAccounts"},
		"the name of a VM":                            {"VSphereMachineTemplate", empty, `{template: {spec: {namingStrategy: {template: control-plane-1}}}}`, "", "spec.template.spec.namingStrategy"},
		"the name of a VM, as later versions have it": {"VSphereMachineTemplate", empty, `{template: {spec: {naming: {template: control-plane-1}}}}`, "", "spec.template.spec.naming"},
		"a scale set of Azure":                        {"AzureMachineTemplate", empty, `{template: {spec: {virtualMachineScaleSetID: /subscriptions/1}}}`, "", "spec.template.spec.virtualMachineScaleSetID"},
		"the names of VMs of Cloud Director":          {"VCDMachineTemplate", empty, `{template: {spec: {vmNamingTemplate: control-plane-1}}}`, "", "spec.template.spec.vmNamingTemplate"},
		"a VM of Outscale":                            {"OscMachineTemplate", empty, `{template: {spec: {node: {vm: {resourceId: i-1}}}}}`, "", "spec.template.spec.node.vm.resourceId"},
		"a control plane of Outscale":                 {"OscMachineTemplate", `{template: {spec: {node: {vm: {role: worker}}}}}`, `{template: {spec: {node: {vm: {role: controlplane}}}}}`, "", "spec.template.spec.node.vm.role"},
		"a control plane of Kairos":                   {"KairosConfigTemplate", empty, `{template: {spec: {role: control-plane}}}`, "", "spec.template.spec.role"},
		"a Job of k0smotron":                          {"RemoteMachineTemplate", empty, `{template: {spec: {provisionJob: {scpCommand: x}}}}`, "", "spec.template.spec.provisionJob"},
		"another cloud":                               {"OpenStackMachineTemplate", `{template: {spec: {identityRef: {name: a, cloudName: b}}}}`, `{template: {spec: {identityRef: {name: a, cloudName: c}}}}`, "", "spec.template.spec.identityRef"},
		"a disk of the host":                          {"KubevirtMachineTemplate", `{template: {spec: {virtualMachineTemplate: {spec: {template: {spec: {volumes: [{name: root}]}}}}}}}`, `{template: {spec: {virtualMachineTemplate: {spec: {template: {spec: {volumes: [{name: root}, {name: host, hostDisk: {path: /}}]}}}}}}}`, "", "spec.template.spec.virtualMachineTemplate.spec.template.spec.volumes.hostDisk"},
		"another volume":                              {"KubevirtMachineTemplate", `{template: {spec: {virtualMachineTemplate: {spec: {template: {spec: {volumes: [{name: root}]}}}}}}}`, `{template: {spec: {virtualMachineTemplate: {spec: {template: {spec: {volumes: [{name: root}, {name: scratch, emptyDisk: {capacity: 1Gi}}]}}}}}}}`, "", ""},
		"another network of KubeVirt":                 {"KubevirtMachineTemplate", empty, `{template: {spec: {virtualMachineTemplate: {spec: {template: {spec: {networks: [{name: a, multus: {networkName: b/c}}]}}}}}}}`, "", "spec.template.spec.virtualMachineTemplate.spec.template.spec.networks"},
		"a list without the field":                    {"GCPMachineTemplate", empty, `{template: {spec: {additionalDisks: [{size: 10}]}}}`, "", ""},
		"a list with the field":                       {"GCPMachineTemplate", empty, `{template: {spec: {additionalDisks: [{encryptionKey: {kmsKeyServiceAccount: admin@x}}]}}}`, "", "spec.template.spec.additionalDisks.encryptionKey.kmsKeyServiceAccount"},
		"a field of another kind":                     {"AzureMachineTemplate", empty, `{template: {spec: {iamInstanceProfile: admin}}}`, "", ""},
		"one that is open":                            {"AWSMachineTemplate", empty, `{template: {spec: {iamInstanceProfile: gpu}}}`, "-AWSMachine.iamInstanceProfile", ""},
		"another one than is open":                    {"AWSMachineTemplate", empty, `{template: {spec: {subnet: {id: a}}}}`, "-AWSMachine.iamInstanceProfile", "spec.template.spec.subnet"},
		"all of a kind":                               {"AWSMachineTemplate", empty, `{template: {spec: {subnet: {id: a}}}}`, "-AWSMachine.*", ""},
		"one that another kind has reserved, too":     {"AzureMachineTemplate", empty, `{template: {spec: {ami: {id: a}}}}`, "AWSMachine.ami.id", ""},
		"one that is reserved, too":                   {"AWSMachineTemplate", empty, `{template: {spec: {ami: {id: a}}}}`, "AWSMachine.ami.id", "spec.template.spec.ami.id"},
		"one of a kind that nobody knows":             {"OwnMachineTemplate", empty, `{template: {spec: {role: a}}}`, "OwnMachine.role", "spec.template.spec.role"},
		"one of all kinds":                            {"OwnMachineTemplate", empty, `{template: {spec: {role: a}}}`, "*.role", "spec.template.spec.role"},
		"an object in an object":                      {"OwnMachineTemplate", empty, `{template: {spec: {resources: [{apiVersion: v1, kind: Secret, metadata: {name: cloud}}]}}}`, "", "spec.template.spec.resources[] (Secret of v1)"},
		"the object of the base":                      {"OwnMachineTemplate", `{template: {spec: {resources: [{apiVersion: v1, kind: Pool, metadata: {name: a}, spec: {size: 1}}]}}}`, `{template: {spec: {resources: [{apiVersion: v1, kind: Pool, metadata: {name: a}, spec: {size: 2}}]}}}`, "", ""},
		"another object of that kind":                 {"OwnMachineTemplate", `{template: {spec: {resources: [{apiVersion: v1, kind: Pool, metadata: {name: a}}]}}}`, `{template: {spec: {resources: [{apiVersion: v1, kind: Pool, metadata: {name: b}}]}}}`, "", "spec.template.spec.resources[] (Pool of v1)"},
		"settings with a kind":                        {"OwnMachineTemplate", empty, `{template: {spec: {disk: {kind: ssd, size: 10}}}}`, "", ""},
		"settings with a version":                     {"OwnMachineTemplate", empty, `{template: {spec: {api: {apiVersion: v1, retries: 3}}}}`, "", ""},
		"a reference":                                 {"OwnMachineTemplate", empty, `{template: {spec: {ref: {apiVersion: v1, kind: Pool, name: a, namespace: fleet}}}}`, "", ""},
		"an object in a pool of ASO":                  {"AzureASOManagedMachinePool", `{resources: []}`, `{resources: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]}`, "", "spec.resources"},
		"a tag of another Cluster":                    {"AWSMachineTemplate", empty, `{template: {spec: {additionalTags: {kubernetes.io/cluster/other: owned}}}}`, "", "spec.template.spec.additionalTags[kubernetes.io/cluster/other]"},
		"a tag of a provider":                         {"AzureMachineTemplate", empty, `{template: {spec: {additionalTags: {sigs.k8s.io_cluster-api-provider-azure_cluster_other: owned}}}}`, "", "spec.template.spec.additionalTags[sigs.k8s.io_cluster-api-provider-azure_cluster_other]"},
		"tags for the bill":                           {"AWSMachineTemplate", empty, `{template: {spec: {additionalTags: {team: a, example.com/team: a, own_team: a, k8s.io: a, "": a}}}}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			base := infrastructure(t, tc.kind, tc.base)
			allowed := allowedBy(t, "*", "", base)
			reserved, err := parseReserved(tc.options)
			if err != nil {
				t.Fatal(err)
			}
			allowed.Rules.Reserved = reserved
			err = allowed.Generated(base, infrastructure(t, tc.kind, tc.patched))
			if tc.want == "" {
				check(t, err, "")
			} else {
				check(t, err, v1alpha1.ReasonFieldNotAllowed, tc.want)
			}
		})
	}
}

// The message names what the platform team can do.
func TestMessageOfReservedField(t *testing.T) {
	const want = "patches of AWSMachineTemplate workers may not change spec.template.spec.iamInstanceProfile, spec.template.spec.subnet, which only the base template can set: " +
		"remove the patch, change the base template, or add -AWSMachine.iamInstanceProfile,-AWSMachine.subnet to the operator's --reserved-fields"
	base := infrastructure(t, "AWSMachineTemplate", `{template: {spec: {}}}`)
	err := allowedBy(t, "", "", base).Generated(base, infrastructure(t, "AWSMachineTemplate", `{template: {spec: {subnet: {id: a}, iamInstanceProfile: b}}}`))
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// Labels by which Pods and controllers know a control plane, and others that a kubelet may not set on its own Node, are
// not for templates.
func TestLabelsOfNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		label, options string
		reserved       bool
	}{
		"a control plane":          {label: "node-role.kubernetes.io/control-plane", reserved: true},
		"a master":                 {label: "node-role.kubernetes.io/master", reserved: true},
		"etcd":                     {label: "node-role.kubernetes.io/etcd", reserved: true},
		"a worker":                 {label: "node-role.kubernetes.io/worker", reserved: true},
		"a restricted label":       {label: "node-restriction.kubernetes.io/tenant", reserved: true},
		"below a restricted one":   {label: "a.node-restriction.kubernetes.io/tenant", reserved: true},
		"a label of Kubernetes":    {label: "kubernetes.io/cluster-service", reserved: true},
		"one of a project":         {label: "scheduling.k8s.io/x", reserved: true},
		"one of the kubelet":       {label: "kubelet.kubernetes.io/x"},
		"one of Nodes":             {label: "node.kubernetes.io/x"},
		"a zone":                   {label: "topology.kubernetes.io/zone"},
		"one for Nodes":            {label: "a.node.cluster.x-k8s.io/x"},
		"an own one":               {label: "example.com/team"},
		"an own one without":       {label: "team"},
		"a domain that looks like": {label: "my-kubernetes.io/x"},
		"one that is open":         {label: "node-role.kubernetes.io/worker", options: "-label:node-role.kubernetes.io/worker"},
		"one that stays closed":    {label: "node-role.kubernetes.io/etcd", options: "-label:node-role.kubernetes.io/worker", reserved: true},
		"all roles":                {label: "node-role.kubernetes.io/gpu", options: "-label:node-role.kubernetes.io/*"},
		"one that is reserved":     {label: "example.com/team", options: "label:example.com/*", reserved: true},
		"one of Cluster API":       {label: "cluster.x-k8s.io/control-plane", options: "-label:*/*", reserved: true},
	} {
		t.Run(name, func(t *testing.T) {
			reserved, err := parseReserved(tc.options)
			if err != nil {
				t.Fatal(err)
			}
			template := &v1alpha1.KarpenterMachineTemplateSpec{}
			template.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{tc.label: ""}
			allowed := Allowed{Cluster: served, Own: NewOwn(), Rules: Rules{Reserved: reserved}}
			if err := allowed.Metadata(template); (err != nil) != tc.reserved {
				t.Errorf("got %v, want it reserved: %t", err, tc.reserved)
			}
			allowed.Pattern.Labels = template.Template.Metadata.LabelStrings() // of a MachineDeployment that the template follows
			if err := allowed.Metadata(template); err != nil {
				t.Errorf("of a MachineDeployment: got %v", err)
			}
		})
	}
}

// The message names what the platform team can do, which is nothing for the labels and annotations of controllers.
func TestMessageOfReservedMetadata(t *testing.T) {
	labels := func(key string) v1alpha1.KarpenterMachineTemplateSpec {
		return v1alpha1.KarpenterMachineTemplateSpec{Template: v1alpha1.MachineTemplate{Metadata: v1alpha1.MachineMetadata{Labels: map[string]v1alpha1.LabelValue{key: ""}}}}
	}
	annotations := func(key string) v1alpha1.KarpenterMachineTemplateSpec {
		return v1alpha1.KarpenterMachineTemplateSpec{Template: v1alpha1.MachineTemplate{Metadata: v1alpha1.MachineMetadata{Annotations: map[string]string{key: ""}}}}
	}
	onResource := func(key string) v1alpha1.KarpenterMachineTemplateSpec {
		return v1alpha1.KarpenterMachineTemplateSpec{ScalableResource: v1alpha1.ScalableResource{Annotations: map[string]string{key: ""}}}
	}
	const because = ", because Kubernetes, Cluster API, Karpenter or the operator decide by it: remove it"
	for name, tc := range map[string]struct {
		template v1alpha1.KarpenterMachineTemplateSpec
		want     string
	}{
		"a label of Kubernetes":  {labels("node-role.kubernetes.io/worker"), "spec.template.metadata.labels may not contain node-role.kubernetes.io/worker" + because + ", or add -label:node-role.kubernetes.io/worker to the operator's --reserved-fields"},
		"a label of Cluster API": {labels("cluster.x-k8s.io/control-plane"), "spec.template.metadata.labels may not contain cluster.x-k8s.io/control-plane" + because},
		"an annotation":          {annotations("node.cluster.x-k8s.io/a"), "spec.template.metadata.annotations may not contain node.cluster.x-k8s.io/a" + because},
		"one of resources":       {onResource("karpenter.sh/a"), "spec.scalableResource.annotations may not contain karpenter.sh/a" + because},
	} {
		t.Run(name, func(t *testing.T) {
			if err := (Allowed{Cluster: served, Own: NewOwn()}).Metadata(&tc.template); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestParseReserved(t *testing.T) {
	for option, problem := range map[string]string{
		"":                                     "",
		"AWSMachine.ami, -AWSMachine.subnet":   "",
		"*.role,label:a/b,-label:*":            "",
		"AWSMachine":                           `expected KIND.FIELD or label:KEY, in which * stands for any characters, or one of these after -, found "AWSMachine"`,
		"-":                                    `found "-"`,
		".ami":                                 `found ".ami"`,
		"AWSMachine.":                          `found "AWSMachine."`,
		"AWSMachine/ami":                       `found "AWSMachine/ami"`,
		"AWSMachine.networkInterfaces[0].name": `found "AWSMachine.networkInterfaces[0].name"`,
	} {
		_, err := Parse("", "", option)
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: got %v, want %q", option, err, problem)
		}
	}
}
