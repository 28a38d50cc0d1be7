// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KarpenterMachineTemplate says which machines Karpenter may make in the Cluster
// this operator serves, and how. It is Karpenter's NodeClass: a NodePool names it
// in spec.template.spec.nodeClassRef. For each instance type, zone and capacity
// type in use, the operator generates one MachineDeployment and reuses it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=kmt,categories={karpenter,cluster-api}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether NodePools that use this template can launch machines"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.available`,description="Number of offerings that can be chosen now, of all offerings"
// +kubebuilder:printcolumn:name="InstanceTypes",type=integer,JSONPath=`.status.instanceTypes`,description="Number of instance types on offer"
// +kubebuilder:printcolumn:name="NodeClaims",type=integer,JSONPath=`.status.nodeClaims`,description="Number of NodeClaims of this template"
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`,description="Number of Machines made from this template"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="Why the template is not ready"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must have at most 63 characters: it becomes a label value of every Machine"
type KarpenterMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata. The name has at most 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which machines can be made.
	// +required
	Spec KarpenterMachineTemplateSpec `json:"spec,omitzero"`

	// status is what the operator observes.
	// +optional
	Status KarpenterMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// KarpenterMachineTemplateSpec says which machines can be made.
type KarpenterMachineTemplateSpec struct {
	// scalableResource says what is generated for each offering in use.
	// Default: a MachineDeployment that is removed after it was empty for 30 minutes.
	// +optional
	// +kubebuilder:default={kind: MachineDeployment}
	ScalableResource ScalableResource `json:"scalableResource,omitempty,omitzero"`

	// template is Cluster API's own machine template: the metadata and spec that
	// every generated Machine gets. After a change of it, new NodeClaims get Machines of
	// new scalable resources. Machines that exist stay as they are until their NodeClaims
	// are deleted: a change replaces none.
	// +required
	Template MachineTemplate `json:"template,omitzero"`

	// patches change copies of the infrastructure and bootstrap templates that
	// template.spec refers to: from one base the operator makes one for each offering
	// in use. They have the form of a ClusterClass's patches and are applied in
	// order, at most 100. A base that no patch changes is used as it is.
	// Default: none. Example:
	// [{target: Infrastructure, jsonPatches: [{op: replace, path: /spec/template/spec/instanceType, valueFrom: {template: "{{ .instanceType }}"}}]}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Patches []Patch `json:"patches,omitempty"`

	// kubelet is the configuration of the kubelet of every node of this template.
	// From it the operator computes how much of an instance type's capacity Pods can
	// use. For a KubeadmConfigTemplate the operator gives it to the kubelet as
	// arguments; for other bootstrap kinds patches must, so that it is what the nodes
	// really run with. Default: the kubelet's own defaults.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`

	// launchTimeout is how long a machine may take to come up, from the creation of
	// its Machine: a Go duration in hours, minutes and seconds. One that has no
	// provider ID by then has failed: its offering counts as unavailable for a
	// while and Karpenter chooses another. One that is older without being a Node
	// is not given to another NodeClaim. Raise it for hardware that takes long;
	// Karpenter itself gives up on a NodeClaim after 15 minutes, and its machine is
	// then passed on to the next one. Default: 10m. Example: 40m.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	LaunchTimeout *metav1.Duration `json:"launchTimeout,omitempty"`

	// spareTTL is how long a machine is kept whose NodeClaim went before it became
	// a Node, for the next NodeClaim that can use it: a Go duration in hours,
	// minutes and seconds. With 0s such a machine is deleted with its NodeClaim.
	// Default: 2m. Example: 5m.
	// +optional
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	SpareTTL *metav1.Duration `json:"spareTTL,omitempty"`

	// maxMachines is how many Machines the NodeClaims of this template may have in
	// all. At the limit nothing is launched. Default: no limit. Example: 500.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxMachines *int32 `json:"maxMachines,omitempty"`

	// discovery finds further instance types in the management cluster. They are
	// merged with instanceTypes by name; what instanceTypes says of a type holds.
	// Default: none.
	// +optional
	Discovery *Discovery `json:"discovery,omitempty"`

	// instanceTypes are the shapes of machine on offer, at most 1000. A template
	// without any, and without discovery, offers nothing and is not Ready.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	InstanceTypes []InstanceType `json:"instanceTypes,omitempty"`
}

// ScalableResourceKind is the kind of the objects the operator generates.
// +kubebuilder:validation:Enum=MachineDeployment;MachinePool
type ScalableResourceKind string

const (
	// ScalableResourceKindMachineDeployment generates MachineDeployments.
	ScalableResourceKindMachineDeployment ScalableResourceKind = "MachineDeployment"
	// ScalableResourceKindMachinePool generates MachinePools.
	ScalableResourceKindMachinePool ScalableResourceKind = "MachinePool"
)

// ScalableResource says what is generated for each offering in use.
type ScalableResource struct {
	// kind is the kind that is generated: MachineDeployment, which works with every
	// infrastructure, or MachinePool, for infrastructures that scale groups best. For
	// MachinePools infrastructureRef names a template of a machine pool or, with
	// providers that have none, a machine pool that no MachinePool owns and that is
	// used as one. Default: MachineDeployment. Example: MachinePool.
	// +optional
	// +kubebuilder:default=MachineDeployment
	Kind ScalableResourceKind `json:"kind,omitempty"`

	// allowNodeLoss allows MachinePools of infrastructures that are known to remove any
	// machine when replicas are lowered, also one that is in use: when a Node goes,
	// another one can go with it, without a drain. Such are AWSMachinePool and
	// OCIMachinePool. Default: false, and a template with them is not Ready.
	// +optional
	AllowNodeLoss bool `json:"allowNodeLoss,omitempty"`

	// emptyTTL is how long a generated object without claims and Machines is kept
	// for reuse before it is deleted: a Go duration in hours, minutes and seconds.
	// Default: 30m. Example: 1h30m.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	EmptyTTL *metav1.Duration `json:"emptyTTL,omitempty"`
}

// MachineTemplate is the template of the generated Machines.
type MachineTemplate struct {
	// metadata holds labels and annotations for every generated Machine, its
	// infrastructure machine and its bootstrap config. Node labels do not come
	// from here but from the NodePool and from instanceTypes[].labels, except
	// those that Cluster API itself copies from Machine to Node (the domains
	// node-role.kubernetes.io, node-restriction.kubernetes.io and
	// node.cluster.x-k8s.io). Example: labels {team: platform}.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.labels) || !self.labels.exists(k, k.startsWith('karpenter.cluster.x-k8s.io/') || k.startsWith('karpenter.sh/'))",message="labels in the domains karpenter.cluster.x-k8s.io and karpenter.sh are set by Karpenter and this operator"
	// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || !self.annotations.exists(k, k.startsWith('karpenter.cluster.x-k8s.io/') || k == 'cluster.x-k8s.io/delete-machine')",message="annotations in the domain karpenter.cluster.x-k8s.io and cluster.x-k8s.io/delete-machine are set by this operator"
	Metadata clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// scalableResourceAnnotations are the annotations of every MachineDeployment or
	// MachinePool that the operator generates from this template; Cluster API copies those
	// of a MachineDeployment to its MachineSets. They do not shape Machines: a change
	// reaches existing MachineDeployments and MachinePools within seconds and replaces
	// nothing. MachineDeployments that discovery finds do not get them. Annotations in the
	// domains karpenter.cluster.x-k8s.io, karpenter.sh and machinedeployment.clusters.x-k8s.io
	// cannot be set here, nor can those with which others pause or scale the resource.
	// A value has at most 1024 characters. With the example, MachineSets create Machines
	// while the control plane is upgraded.
	// Default: none. Example: {machineset.cluster.x-k8s.io/skip-preflight-checks: ControlPlaneIsStable}.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="each key must be an annotation key: an optional domain and a slash, then letters, digits, '-', '_' and '.'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 1024)",message="each value must have at most 1024 characters"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.startsWith('karpenter.cluster.x-k8s.io/') || k.startsWith('karpenter.sh/') || k.startsWith('machinedeployment.clusters.x-k8s.io/'))",message="annotations in the domains karpenter.cluster.x-k8s.io, karpenter.sh and machinedeployment.clusters.x-k8s.io are set by this operator, Karpenter and Cluster API"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k in ['cluster.x-k8s.io/paused', 'cluster.x-k8s.io/disable-machine-create', 'cluster.x-k8s.io/replicas-managed-by', 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size', 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size'])",message="annotations that pause a MachineDeployment or MachinePool, or let others set its replicas, cannot be set in a template: set cluster.x-k8s.io/paused on the object itself"
	// +kubebuilder:validation:XValidation:rule="!('machineset.cluster.x-k8s.io/skip-preflight-checks' in self) || (self['machineset.cluster.x-k8s.io/skip-preflight-checks'] + ',').matches('^( *(All|KubeadmVersionSkew|KubernetesVersionSkew|ControlPlaneIsStable|ControlPlaneVersionSkew) *,)+$')",message="machineset.cluster.x-k8s.io/skip-preflight-checks must be a list of All, KubeadmVersionSkew, KubernetesVersionSkew, ControlPlaneIsStable and ControlPlaneVersionSkew, separated by commas"
	ScalableResourceAnnotations map[string]string `json:"scalableResourceAnnotations,omitempty"`

	// spec is the part of Cluster API's MachineSpec that a template can set.
	// +required
	Spec MachineTemplateSpec `json:"spec,omitzero"`
}

// MachineTemplateSpec is the part of Cluster API's MachineSpec that a template
// can set. The others are not for templates: clusterName is the served Cluster,
// failureDomain is the offering's zone, providerID belongs to the Machine.
type MachineTemplateSpec struct {
	// version is the Kubernetes version of the machines. A KubeadmConfigTemplate needs
	// it: without it the template is not Ready.
	// Default: none, for providers that find it elsewhere. Example: v1.36.3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+].*)?$`
	Version string `json:"version,omitempty"`

	// bootstrap says where the machines' bootstrap data comes from: exactly one of
	// configRef (a bootstrap template, as KubeadmConfigTemplate) and dataSecretName
	// (a Secret that exists already). Nodes must register with the taint
	// karpenter.sh/unregistered:NoExecute: to a copy of a KubeadmConfigTemplate the
	// operator adds it, for other bootstrap kinds patches must.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.configRef) != has(self.dataSecretName)",message="exactly one of configRef and dataSecretName must be set"
	// +kubebuilder:validation:XValidation:rule="!has(self.dataSecretName) || self.dataSecretName.size() > 0",message="dataSecretName must not be empty"
	Bootstrap clusterv1.Bootstrap `json:"bootstrap,omitzero"`

	// infrastructureRef names the base infrastructure machine template, for all
	// instance types that do not name their own; patches are applied to copies of
	// it. For MachinePools it is one of a machine pool, see scalableResource.kind. It is
	// looked up in the served Cluster's namespace.
	// Default: none; then every instance type must name its own.
	// Example: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: workers}.
	// +optional
	InfrastructureRef *clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty"`

	// minReadySeconds is for how many seconds a Machine must be ready before
	// Cluster API counts it as available. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// readinessGates are further conditions that a Machine needs to be Ready.
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
	// terminationGracePeriod limits Karpenter's drain. They only count for Machines that
	// Cluster API drains itself, because no NodeClaim is left.
	// Default: Cluster API's defaults. Example: {nodeDeletionTimeoutSeconds: 60}.
	// +optional
	Deletion *clusterv1.MachineDeletionSpec `json:"deletion,omitempty"`
}

// KarpenterMachineTemplateStatus is what the operator observes.
type KarpenterMachineTemplateStatus struct {
	// conditions are ClusterReady, InfrastructureReady, BootstrapReady,
	// InstanceTypesReady and, True when all of these are, Ready. The others have no
	// bearing on Ready: OfferingsValid is False while some offerings cannot be made,
	// OfferingsAvailable while some failed not long ago, CapacityAccurate while Nodes
	// report something else than is declared, NodesTainted while Nodes join without the
	// taint that Karpenter needs, and MachinesProgressing while NodeClaims wait for Machines
	// that Cluster API does not create or does not act on.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []status.Condition `json:"conditions,omitempty"`

	// instanceTypes is the number of instance types on offer.
	// +optional
	InstanceTypes int32 `json:"instanceTypes"`

	// offerings is the number of offerings of all instance types.
	// +optional
	Offerings int32 `json:"offerings"`

	// available is how many offerings Karpenter can choose now while the template is
	// Ready, of all offerings. The others are unavailable, invalid, paused or at their
	// limit. Example: 270/300.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Available string `json:"available,omitempty"`

	// machines is the number of Machines of all scalable resources, with those
	// that are going.
	// +optional
	Machines int32 `json:"machines"`

	// nodeClaims is the number of NodeClaims of this template, which maxMachines limits.
	// +optional
	NodeClaims int32 `json:"nodeClaims"`

	// limitedOfferings are the offerings with maxMachines or a reservation that are
	// in use, and how much of it is used; of very many, those closest to their limit.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	LimitedOfferings []LimitedOffering `json:"limitedOfferings,omitempty"`

	// invalidOfferings are the offerings that cannot be made, by what is wrong with them.
	// The last entry stands for all others if there are too many messages.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	InvalidOfferings []InvalidOfferings `json:"invalidOfferings,omitempty"`

	// acceptedHash identifies the generated templates that the management cluster's
	// API server was asked about in a dry run, so that it is not asked again.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	AcceptedHash string `json:"acceptedHash,omitempty"`

	// observedCapacity is what Nodes of this template's current revision really
	// report, by instance type, where it is not what is declared. Karpenter counts
	// with it instead.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	ObservedCapacity []ObservedCapacity `json:"observedCapacity,omitempty"`

	// unavailableOfferings are the offerings that failed not long ago. Karpenter does
	// not choose them until the time that each names; they stay listed for another
	// half hour, so that an offering that fails again is left alone for longer. Of very
	// many, those that end first are not listed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	UnavailableOfferings []UnavailableOffering `json:"unavailableOfferings,omitempty"`

	// scalableResources are the objects generated from this template, sorted by name.
	// Of very many, those are listed that are paused, then those with Machines that are
	// not ready.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	ScalableResources []ScalableResourceStatus `json:"scalableResources,omitempty"`
}

// ScalableResourceStatus tells of one generated object.
type ScalableResourceStatus struct {
	// name of the object, in the namespace of the served Cluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// kind of the object.
	// +required
	Kind ScalableResourceKind `json:"kind"`

	// instanceType it makes.
	// +required
	// +kubebuilder:validation:MaxLength=63
	InstanceType string `json:"instanceType"`

	// zone its Machines are in.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// capacityType of its Machines.
	// +required
	// +kubebuilder:validation:MaxLength=63
	CapacityType string `json:"capacityType"`

	// paused reports that the operator neither sets the replicas of the object nor links or deletes its
	// Machines, because the object is paused in Cluster API, its owner rolls it out, or another controller
	// sets its replicas. Its offering is unavailable.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// replicas is the number of Machines asked for.
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
	// DefaultEmptyTTL is the default of scalableResource.emptyTTL.
	DefaultEmptyTTL = 30 * time.Minute
	// DefaultSpareTTL is the default of spareTTL.
	DefaultSpareTTL = 2 * time.Minute
	// DefaultLaunchTimeout is the default of launchTimeout.
	DefaultLaunchTimeout = 10 * time.Minute
)
