// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KarpenterMachineTemplate describes which machines Karpenter can create in the Cluster
// that this operator serves, and how. It is Karpenter's NodeClass: a NodePool refers to
// it in spec.template.spec.nodeClassRef. For each combination of instance type, zone and
// capacity type in use, the operator generates one MachineDeployment or MachinePool and
// reuses it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=kmt,categories={karpenter,cluster-api}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether NodePools that use this template can launch machines"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`,description="Kubernetes version of new machines"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableOfferings`,description="Number of offerings that Karpenter can choose now"
// +kubebuilder:printcolumn:name="Offerings",type=integer,JSONPath=`.status.offerings`,description="Number of offerings of all instance types"
// +kubebuilder:printcolumn:name="InstanceTypes",type=integer,priority=1,JSONPath=`.status.instanceTypes`,description="Number of instance types on offer"
// +kubebuilder:printcolumn:name="NodeClaims",type=integer,priority=1,JSONPath=`.status.nodeClaims`,description="Number of NodeClaims of this template"
// +kubebuilder:printcolumn:name="Machines",type=integer,priority=1,JSONPath=`.status.machines`,description="Number of Machines created from this template"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="Why the template is not ready"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must have at most 63 characters: it becomes a label value of every Machine"
type KarpenterMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata. The name has at most 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes which machines can be created.
	// +required
	Spec KarpenterMachineTemplateSpec `json:"spec,omitzero"`

	// status is what the operator observes. Numbers that change with each NodeClaim or
	// Machine can be 10 seconds old.
	// +optional
	Status KarpenterMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// KarpenterMachineTemplateSpec describes which machines can be created.
//
// +kubebuilder:validation:MinProperties=1
type KarpenterMachineTemplateSpec struct {
	// scalableResource describes what the operator generates for each offering in use.
	// Default: a MachineDeployment that the operator deletes when it has been empty for 30
	// minutes.
	// +optional
	// +kubebuilder:default={kind: MachineDeployment}
	ScalableResource ScalableResource `json:"scalableResource,omitempty,omitzero"`

	// template is Cluster API's own machine template: the metadata and spec that every
	// generated Machine gets. After a change of version, bootstrap or infrastructureRef,
	// or of the content of the templates that these name, new NodeClaims get Machines of
	// new scalable resources, and existing Nodes drift. The other fields are changed in
	// place within seconds, also for existing Machines, and replace none. Cluster API gives
	// Machines of MachinePools only the labels and annotations.
	// +required
	Template MachineTemplate `json:"template,omitzero"`

	// patches change copies of the infrastructure and bootstrap templates that
	// template.spec refers to: from one base, the operator creates a copy for each
	// offering in use. They have the form of a ClusterClass's patches. They are applied
	// in order, at most 100 with 1000 operations and 256 KiB. If no patch changes a base,
	// the operator uses the base itself.
	// Default: none. Example:
	// [{target: Infrastructure, jsonPatches: [{op: replace, path: /spec/template/spec/instanceType, valueFrom: {template: "{{ .instanceType }}"}}]}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.map(p, p.jsonPatches.size()).sum() <= 1000",message="all patches together must have at most 1000 jsonPatches"
	Patches []Patch `json:"patches,omitempty"`

	// kubelet is the configuration of the kubelet of every Node of this template. The
	// operator uses it to compute how much of an instance type's capacity Pods can use.
	// For a KubeadmConfigTemplate, the operator passes it to the kubelet as arguments.
	// For other bootstrap kinds, set the same values with patches, so that the kubelets
	// really run with this configuration. Default: the kubelet's own defaults.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`

	// launchTimeoutSeconds is how long a machine can take to get a provider ID, in seconds
	// after the creation of its Machine. Then its launch fails: the offering becomes
	// unavailable for at least 3 minutes, and Karpenter chooses another one. An older
	// Machine without a Node serves no other NodeClaim. Set more than slow hardware needs:
	// Karpenter gives up on a NodeClaim after 15 minutes, and the next NodeClaim then gets
	// the machine. At most 31536000. Default: 600. Example: 2400.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	LaunchTimeoutSeconds *int32 `json:"launchTimeoutSeconds,omitempty"`

	// spareTTLSeconds is for how many seconds the operator keeps a machine whose NodeClaim
	// was deleted before the machine became a Node, for the next NodeClaim that can use it.
	// With 0, the operator deletes such a machine with its NodeClaim. At most 31536000.
	// Default: 120. Example: 300.
	// +optional
	// +kubebuilder:default=120
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	SpareTTLSeconds *int32 `json:"spareTTLSeconds,omitempty"`

	// maxMachines is how many Machines the NodeClaims of this template can have in total.
	// At the limit, nothing is launched. Default: no limit. Example: 500.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxMachines *int32 `json:"maxMachines,omitempty"`

	// rollout limits when outdated Nodes are replaced after a change: a few first, and the
	// others when the new Nodes have been ready for some time. It stops by itself if a new
	// Node fails. Example: {canary: 5%, soakSeconds: 3600}.
	// Default: all outdated Nodes are replaced within the disruption budgets of their
	// NodePools.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	// spread lets the Nodes of each NodePool take turns over offerings that cost about the
	// same and have the same number of CPUs: other zones and instance types. An offering
	// gets fewer Nodes the more it costs and the more often it has failed recently.
	// Consolidation does not undo it. At most one entry for each capacity type.
	// Default: none; then a Node gets the cheapest offering that fits.
	// Example: [{capacityType: spot, maxPriceIncreasePercent: 20}].
	// +optional
	// +listType=map
	// +listMapKey=capacityType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Spread []Spread `json:"spread,omitempty"`

	// remediation restarts the machine of an unhealthy Node before Karpenter replaces the
	// Node, within the disruption budgets of its NodePool. It needs Karpenter's feature gate
	// NodeRepair, and an infrastructure provider with a remediation template, such as Metal3.
	// Condition RemediationReady reports whether it can be used. If it cannot, Nodes are
	// replaced.
	// Default: unhealthy Nodes are replaced.
	// Example: {templateRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3RemediationTemplate, name: reboot}}.
	// +optional
	Remediation *Remediation `json:"remediation,omitempty"`

	// discovery finds instance types in the management cluster, in addition to those of
	// catalogRefs. A found object with the name of a catalog's instance type adds offerings
	// to it; if it contradicts the catalog, it is left out, and condition OfferingsValid
	// names it. Default: none.
	// Example: {machineDeployments: {selector: {matchLabels: {karpenter: "true"}}}}.
	// +optional
	Discovery *Discovery `json:"discovery,omitempty"`

	// failureDomains names the Cluster's failure domain of a zone, if that has another
	// name than the zone that Nodes report, as on Azure. It applies to all instance types
	// of the template. Zones whose failure domain the Cluster does not have are not
	// offered, if the Cluster reports any failure domains; condition OfferingsValid
	// names them. At most 64, each with another zone.
	// Default: the name of the zone. Example: [{zone: eastus-1, failureDomain: "1"}].
	// +optional
	// +listType=map
	// +listMapKey=zone
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	FailureDomains []ZoneFailureDomain `json:"failureDomains,omitempty"`

	// catalogRefs name the InstanceTypeCatalogs whose instance types this template offers,
	// in addition to what discovery finds. An instance type that two of them describe
	// differently is not offered, nor is an offering that two of them have. A template
	// without any instance type offers nothing and is not Ready.
	// Default: none. Example: [{name: aws-us-east-1}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	CatalogRefs []CatalogReference `json:"catalogRefs,omitempty"`
}

// ZoneFailureDomain names the failure domain of a zone.
type ZoneFailureDomain struct {
	// zone is the name of the zone, as Nodes report it. Example: eastus-1.
	// +required
	Zone Zone `json:"zone,omitempty"`

	// failureDomain is the name of the Cluster's failure domain. Example: "1".
	// +required
	FailureDomain FailureDomain `json:"failureDomain,omitempty"`
}

// FailureDomain is the name of a failure domain of a Cluster.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
type FailureDomain string

// CatalogReference names an InstanceTypeCatalog.
type CatalogReference struct {
	// name of the InstanceTypeCatalog. Example: aws-us-east-1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// RefersTo reports whether the template refers to the InstanceTypeCatalog with a name.
func (t *KarpenterMachineTemplate) RefersTo(catalog string) bool {
	return slices.ContainsFunc(t.Spec.CatalogRefs, func(ref CatalogReference) bool { return ref.Name == catalog })
}

// ScalableResourceKind is the kind of the objects that the operator generates.
// +kubebuilder:validation:Enum=MachineDeployment;MachinePool
type ScalableResourceKind string

const (
	// ScalableResourceKindMachineDeployment generates MachineDeployments.
	ScalableResourceKindMachineDeployment ScalableResourceKind = "MachineDeployment"
	// ScalableResourceKindMachinePool generates MachinePools.
	ScalableResourceKindMachinePool ScalableResourceKind = "MachinePool"
)

// ScalableResource describes what the operator generates for each offering in use.
//
// +kubebuilder:validation:MinProperties=1
type ScalableResource struct {
	// kind is the generated kind: MachineDeployment, which works with every
	// infrastructure, or MachinePool, for infrastructures that work best when they scale
	// groups. For MachinePools, infrastructureRef names a template of a machine pool.
	// With providers that have no such template, it names a machine pool that no
	// MachinePool owns and that the operator uses as a template.
	// Default: MachineDeployment. Example: MachinePool.
	// +optional
	// +kubebuilder:default=MachineDeployment
	Kind ScalableResourceKind `json:"kind,omitempty"`

	// allowNodeLoss allows MachinePools of infrastructures that are known to delete any
	// machine when replicas are lowered, even one that is in use. When a Node is removed,
	// another Node can then be lost with it, without a drain. AWSMachinePool and
	// OCIMachinePool are such infrastructures. Default: false, and a template with them
	// is not Ready.
	// +optional
	AllowNodeLoss bool `json:"allowNodeLoss,omitempty"`

	// emptyTTLSeconds is for how many seconds the operator keeps a generated object without
	// NodeClaims and Machines for reuse before it deletes it. At most 31536000.
	// Default: 1800. Example: 5400.
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	EmptyTTLSeconds *int32 `json:"emptyTTLSeconds,omitempty"`

	// annotations of every generated object. Cluster API copies those of a MachineDeployment
	// to its MachineSets. A change reaches existing objects within seconds and replaces no
	// Machine. Discovered MachineDeployments do not get them. Annotations of the operator,
	// Karpenter and Cluster API, and those that pause the object or let another controller
	// scale it, are refused. A value has at most 1024 characters. With the example,
	// MachineSets create Machines during an upgrade of the control plane.
	// Default: none. Example: {machineset.cluster.x-k8s.io/skip-preflight-checks: ControlPlaneIsStable}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="each key must be an annotation key: an optional domain and a slash, then letters, digits, '-', '_' or '.'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 1024)",message="each value must have at most 1024 characters"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('karpenter.cluster.x-k8s.io/') || k.startsWith('karpenter.sh/') || k.startsWith('machinedeployment.clusters.x-k8s.io/'))",message="annotations must not be in the domains karpenter.cluster.x-k8s.io, karpenter.sh and machinedeployment.clusters.x-k8s.io: the operator, Karpenter and Cluster API set them"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k in ['cluster.x-k8s.io/paused', 'cluster.x-k8s.io/disable-machine-create', 'cluster.x-k8s.io/replicas-managed-by', 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size', 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size'])",message="annotations must not pause the MachineDeployment or MachinePool or let another controller set its replicas: set cluster.x-k8s.io/paused on the object itself"
	// +kubebuilder:validation:XValidation:rule="!('machineset.cluster.x-k8s.io/skip-preflight-checks' in self) || (self['machineset.cluster.x-k8s.io/skip-preflight-checks'] + ',').matches('^( *(All|KubeadmVersionSkew|KubernetesVersionSkew|ControlPlaneIsStable|ControlPlaneVersionSkew) *,)+$')",message="machineset.cluster.x-k8s.io/skip-preflight-checks must be a comma-separated list of All, KubeadmVersionSkew, KubernetesVersionSkew, ControlPlaneIsStable or ControlPlaneVersionSkew"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// MachineTemplate is the template of the generated Machines.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.from) || has(self.spec) && has(self.spec.bootstrap)",message="spec.bootstrap or from must be set: name a bootstrap template, or a MachineDeployment to take the settings of Machines from"
type MachineTemplate struct {
	// from names a MachineDeployment of the served Cluster that this template follows. This
	// is the recommended way for Clusters with a topology. From it come bootstrap,
	// infrastructureRef, version, deletion, readinessGates, minReadySeconds, and labels and
	// annotations of Machines. What this template sets itself takes precedence. If the
	// MachineDeployment changes, Nodes drift as after a change of this template. It can have
	// 0 replicas. See docs/guides/upgrades.md.
	// Default: none. Example: {machineDeploymentTopology: md-0}.
	// +optional
	From *MachineTemplateSource `json:"from,omitempty"`

	// metadata holds labels and annotations for every generated Machine, its
	// infrastructure machine and its bootstrap config. Node labels do not come from here
	// but from the NodePool and from the labels of instance types, except for those that
	// Cluster API itself copies from Machine to Node (the domains
	// node-role.kubernetes.io, node-restriction.kubernetes.io and node.cluster.x-k8s.io).
	// Example: {labels: {team: platform}}.
	// +optional
	Metadata MachineMetadata `json:"metadata,omitempty,omitzero"`

	// spec is the part of Cluster API's MachineSpec that a template can set. With from,
	// nothing in it is required.
	// +optional
	Spec MachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// MachineMetadata is the metadata of the generated Machines.
//
// +kubebuilder:validation:MinProperties=1
type MachineMetadata struct {
	// labels of every generated Machine, at most 64. Default: none. Example: {team: platform}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="each key must be a label key: an optional domain in lower case and a slash, then at most 63 letters, digits, '-', '_' or '.'"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('karpenter.cluster.x-k8s.io/') || k.startsWith('karpenter.sh/'))",message="labels must not be in the domains karpenter.cluster.x-k8s.io and karpenter.sh: Karpenter and the operator set them"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations of every generated Machine, at most 64 with 4096 characters each.
	// Default: none. Example: {example.com/owner: platform}.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="each key must be an annotation key: an optional domain in lower case and a slash, then at most 63 letters, digits, '-', '_' or '.'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 4096)",message="each value must have at most 4096 characters"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('karpenter.cluster.x-k8s.io/') || k == 'cluster.x-k8s.io/delete-machine')",message="annotations must not be in the domain karpenter.cluster.x-k8s.io and must not contain cluster.x-k8s.io/delete-machine: the operator sets them"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// LabelStrings returns the labels as Kubernetes has them.
func (m MachineMetadata) LabelStrings() map[string]string {
	labels := make(map[string]string, len(m.Labels))
	for key, value := range m.Labels {
		labels[key] = string(value)
	}
	return labels
}

// MachineTemplateSpec is the part of Cluster API's MachineSpec that a template can set.
// The other fields are not for templates: clusterName is the served Cluster,
// failureDomain is the offering's zone, and providerID belongs to the Machine.
//
// +kubebuilder:validation:MinProperties=1
type MachineTemplateSpec struct {
	// version is the Kubernetes version of the machines. If it is not set, new machines
	// follow the MachineDeployment in from or the control plane, and after an upgrade
	// Karpenter replaces the Nodes that have another version. Set it to stay at a version.
	// Nothing is launched if it does not fit the control plane: see docs/guides/upgrades.md.
	// Condition VersionReady reports which version is used and why.
	// Default: that of the MachineDeployment in from, or of the control plane.
	// Example: v1.36.3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+].*)?$`
	Version string `json:"version,omitempty"`

	// bootstrap is the source of the machines' bootstrap data: exactly one of configRef
	// (a bootstrap template, such as KubeadmConfigTemplate) and dataSecretName (an
	// existing Secret). Nodes must register with the taint
	// karpenter.sh/unregistered:NoExecute. The operator adds the taint to a copy of a
	// KubeadmConfigTemplate. For other bootstrap kinds, add it with patches.
	// Default: that of the MachineDeployment in from; without from, it is required.
	// Example: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: workers}}.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.configRef) != has(self.dataSecretName)",message="exactly one of configRef and dataSecretName must be set"
	// +kubebuilder:validation:XValidation:rule="!has(self.dataSecretName) || self.dataSecretName.size() > 0",message="dataSecretName must not be empty"
	// +kubebuilder:validation:XValidation:rule="!has(self.configRef) || self.configRef.apiGroup == 'bootstrap.cluster.x-k8s.io'",message="apiGroup must be bootstrap.cluster.x-k8s.io, that of bootstrap templates",fieldPath=".configRef.apiGroup"
	Bootstrap clusterv1.Bootstrap `json:"bootstrap,omitempty,omitzero"`

	// infrastructureRef names the base infrastructure machine template, in the served
	// Cluster's namespace, for all instance types that do not name their own. Patches are
	// applied to copies of it. For MachinePools, it names the template of a machine pool,
	// see scalableResource.kind.
	// Default: that of the MachineDeployment in from; without from, every instance type
	// must name its own.
	// Example: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: workers}.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.apiGroup == 'infrastructure.cluster.x-k8s.io'",message="apiGroup must be infrastructure.cluster.x-k8s.io, that of machine templates",fieldPath=".apiGroup"
	InfrastructureRef *clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty"`

	// minReadySeconds is for how many seconds a Machine must be ready before Cluster API
	// counts it as available. Default: 0. Example: 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// readinessGates are additional conditions that a Machine needs to be Ready.
	// Default: none. Example: [{conditionType: StorageReady}].
	// +optional
	// +listType=map
	// +listMapKey=conditionType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ReadinessGates []clusterv1.MachineReadinessGate `json:"readinessGates,omitempty"`

	// deletion holds Cluster API's own timeouts for the deletion of Machines, in seconds.
	// nodeDrainTimeoutSeconds and nodeVolumeDetachTimeoutSeconds have no effect on a
	// Machine whose Node Karpenter has drained, which is every Machine of a NodeClaim:
	// Cluster API then neither drains nor waits for volumes, and the NodePool's
	// terminationGracePeriod limits Karpenter's drain. They apply only to Machines that
	// Cluster API drains itself, because no NodeClaim is left.
	// Default: Cluster API's defaults. Example: {nodeDeletionTimeoutSeconds: 60}.
	// +optional
	Deletion *clusterv1.MachineDeletionSpec `json:"deletion,omitempty"`
}

// KarpenterMachineTemplateStatus is what the operator observes.
type KarpenterMachineTemplateStatus struct {
	// conditions are Ready and those on which it depends: ClusterReady, FromReady (with
	// template.from), InfrastructureReady, BootstrapReady, VersionReady and
	// InstanceTypesReady. OfferingsValid, OfferingsAvailable, CapacityAccurate, NodesTainted,
	// NodesCurrent, MachinesProgressing, RolloutProgressing (with rollout) and RemediationReady
	// (with remediation) are False while something needs attention, but Ready does not depend on them. A template that is being
	// deleted is not Ready, and has Deletable, which is False while it is in use. See
	// docs/reference/conditions.md.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Conditions []status.Condition `json:"conditions,omitempty"`

	// version is the Kubernetes version of new machines; empty if they get none.
	// Example: v1.36.3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// rollout is how far the rollout of the last change is; missing if the template has no
	// spec.rollout.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// from identifies what the operator found in the MachineDeployment that
	// spec.template.from names, and has examined. It is missing while that
	// MachineDeployment cannot be used.
	// +optional
	From *ObservedMachineTemplate `json:"from,omitempty"`

	// instanceTypes is the number of instance types on offer.
	// +optional
	InstanceTypes int32 `json:"instanceTypes"`

	// offerings is the number of offerings of all instance types.
	// +optional
	Offerings int32 `json:"offerings"`

	// availableOfferings is how many of the offerings Karpenter can choose now while the
	// template is Ready. The others are unavailable, invalid, paused or at their limit.
	// +optional
	AvailableOfferings int32 `json:"availableOfferings"`

	// machines is the number of Machines of all scalable resources, including those that
	// are being deleted.
	// +optional
	Machines int32 `json:"machines"`

	// nodeClaims is the number of NodeClaims of this template. maxMachines limits it.
	// +optional
	NodeClaims int32 `json:"nodeClaims"`

	// limitedOfferings are the offerings in use that have maxMachines or a reservation,
	// and all that have capacityFrom, with how much of the limit is used. If there are too many, the list has those
	// closest to their limit.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	LimitedOfferings []LimitedOffering `json:"limitedOfferings,omitempty"`

	// invalidOfferings are the offerings that cannot be created, grouped by what is wrong
	// with them. If there are too many messages, the last entry stands for all others.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	InvalidOfferings []InvalidOfferings `json:"invalidOfferings,omitempty"`

	// acceptedHash identifies the generated templates that the operator has checked in a
	// dry run at the management cluster's API server, so that it does not repeat the dry
	// run.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	AcceptedHash string `json:"acceptedHash,omitempty"`

	// observedCapacity is what Nodes of this template's current revision report, by
	// instance type, if it differs from the declared capacity. Karpenter plans with it
	// instead.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	ObservedCapacity []ObservedCapacity `json:"observedCapacity,omitempty"`

	// observedDevices are the devices that Nodes of this template's current revision publish
	// in ResourceSlices, by instance type, if they differ from the declared devices. Karpenter
	// plans with them instead. If there are too many, the list omits those of types without
	// Nodes first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ObservedDevices []ObservedDevices `json:"observedDevices,omitempty"`

	// unavailableOfferings are the offerings that failed recently. Karpenter does not
	// choose an offering until the time in its entry. The entry stays for another 30
	// minutes, so that an offering that fails again is unavailable for longer. If there
	// are too many, the list omits those that become available first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	UnavailableOfferings []UnavailableOffering `json:"unavailableOfferings,omitempty"`

	// scalableResources are the objects generated from this template, sorted by name. If
	// there are too many, the list has those that are paused, then those with Machines
	// that are not ready.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	ScalableResources []ScalableResourceStatus `json:"scalableResources,omitempty"`
}

// ScalableResourceStatus is the state of one generated object.
type ScalableResourceStatus struct {
	// name of the object, in the namespace of the served Cluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// kind of the object.
	// +required
	Kind ScalableResourceKind `json:"kind,omitempty"`

	// instanceType of its Machines.
	// +required
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// zone of its Machines.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// capacityType of its Machines.
	// +required
	// +kubebuilder:validation:MaxLength=63
	CapacityType string `json:"capacityType"`

	// paused reports whether the operator neither sets the replicas of the object nor
	// links or deletes its Machines. The reason is that the object is paused in Cluster
	// API, that a user has changed it or rolls it out, or that another controller sets its
	// replicas. Its offering is unavailable.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// replicas is the number of Machines that the object should have.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of Machines that are Ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
}

// KarpenterMachineTemplateList is a list of KarpenterMachineTemplates.
//
// +kubebuilder:object:root=true
type KarpenterMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the templates.
	Items []KarpenterMachineTemplate `json:"items"`
}

const (
	// DefaultEmptyTTL is the default of scalableResource.emptyTTLSeconds.
	DefaultEmptyTTL = 30 * time.Minute
	// DefaultSpareTTL is the default of spareTTLSeconds.
	DefaultSpareTTL = 2 * time.Minute
	// DefaultLaunchTimeout is the default of launchTimeoutSeconds.
	DefaultLaunchTimeout = 10 * time.Minute
)
