// SPDX-License-Identifier: Apache-2.0

package tenancy

import "maps"

// FieldsByKind returns the fields that are reserved by default, by the kind of what is generated.
func FieldsByKind() map[string][]string { return maps.Clone(fieldsByKind) }

// fieldsByKind are the fields of machines and machine pools that only base templates can set, by kind: those by which a
// name leads to an object that exists, and those that give an instance an identity in the cloud, a place in another
// network, or data of others. They were read from the providers' API types and controllers; docs/security.md has the
// versions. Lists on the way to a field count with each of their items.
var fieldsByKind = map[string][]string{
	// AWS. A profile, role or policy is an identity. The other names are those of objects that the provider changes and
	// deletes without asking who made them (pkg/cloud/services/eks/nodegroup.go, services/secretsmanager/secret.go).
	"AWSMachine": {
		"iamInstanceProfile", "additionalSecurityGroups", "securityGroupOverrides", "networkInterfaces", "subnet", "publicIP", "elasticIpPool",
		"cloudInit.secretPrefix", "cloudInit.secretCount",
	},
	"AWSMachinePool": {
		"awsLaunchTemplate.iamInstanceProfile", "awsLaunchTemplate.additionalSecurityGroups", "awsLaunchTemplate.name", "awsLaunchTemplate.versionNumber",
		"subnets", "availabilityZoneSubnetType", "lifecycleHooks",
	},
	"AWSManagedMachinePool": {
		"eksNodegroupName", "roleName", "roleAdditionalPolicies", "rolePath", "rolePermissionsBoundary", "remoteAccess", "subnetIDs", "availabilityZoneSubnetType",
		"awsLaunchTemplate.iamInstanceProfile", "awsLaunchTemplate.additionalSecurityGroups", "awsLaunchTemplate.name", "awsLaunchTemplate.versionNumber", "lifecycleHooks",
	},
	"ROSAMachinePool": {"nodePoolName", "additionalSecurityGroups", "subnet"},
	// Azure. With identity SystemAssigned alone, its webhook makes the VM a Contributor of the subscription
	// (api/v1beta1/azuremachine_default.go).
	"AzureMachine": {
		"identity", "systemAssignedIdentityRole", "roleAssignmentName", "userAssignedIdentities", "vmExtensions", "networkInterfaces", "subnetName",
		"allocatePublicIP", "enableIPForwarding", "dnsServers", "diagnostics", "virtualMachineScaleSetID",
	},
	"AzureMachinePool": {
		"identity", "systemAssignedIdentityRole", "roleAssignmentName", "userAssignedIdentities",
		"template.vmExtensions", "template.networkInterfaces", "template.subnetName", "template.diagnostics",
	},
	"AzureManagedMachinePool": {"name", "asoManagedClustersAgentPoolPatches", "subnetName", "enableNodePublicIP", "nodePublicIPPrefixID"},
	// Its objects are applied with the rights of the provider, whatever they are (controllers/resource_reconciler.go).
	"AzureASOManagedMachinePool": {"resources"},
	// Google Cloud.
	"GCPMachine": {
		"serviceAccounts", "additionalNetworkTags", "resourceManagerTags", "subnet", "aliasIPRanges", "ipForwarding", "publicIP",
		"rootDiskEncryptionKey.kmsKeyServiceAccount", "additionalDisks.encryptionKey.kmsKeyServiceAccount",
	},
	"GCPMachinePool": {
		"serviceAccounts", "additionalNetworkTags", "resourceManagerTags", "subnet", "aliasIPRanges", "ipForwarding", "publicIP",
		"rootDiskEncryptionKey.kmsKeyServiceAccount", "additionalDisks.encryptionKey.kmsKeyServiceAccount",
	},
	"GCPManagedMachinePool": {
		"nodePoolName", "nodeSecurity.serviceAccount", "nodeNetwork.tags", "nodeNetwork.podRangeName", "nodeNetwork.podRangeCidrBlock", "nodeNetwork.createPodRange",
	},
	// vSphere. The provider takes a VM with the name that namingStrategy (naming since v1.16) makes, and deletes it with the Machine
	// (pkg/services/vimmachine.go, pkg/services/govmomi/util.go). It clones any VM that template names.
	"VSphereMachine": {
		"namingStrategy", "naming", "folder", "datacenter", "resourcePool", "datastore", "storagePolicyName", "template", "snapshot", "cloneMode", "network", "customVMXKeys", "tagIDs",
	},
	// OpenStack. One Secret can have credentials for several clouds.
	"OpenStackMachine": {"identityRef", "ports", "securityGroups", "floatingIPPoolRef", "trunk"},
	// Metal3. The data can be that of a control plane.
	"Metal3Machine": {"dataTemplate"},
	// KubeVirt, whose VMs run beside those of others.
	"KubevirtMachine": {
		"infraClusterSecretRef", "virtualMachineTemplate.metadata", "virtualMachineTemplate.spec.template.metadata",
		"virtualMachineTemplate.spec.template.spec.volumes.hostDisk", "virtualMachineTemplate.spec.template.spec.volumes.persistentVolumeClaim",
		"virtualMachineTemplate.spec.template.spec.volumes.dataVolume", "virtualMachineTemplate.spec.template.spec.volumes.ephemeral",
		"virtualMachineTemplate.spec.template.spec.volumes.memoryDump", "virtualMachineTemplate.spec.template.spec.volumes.containerPath",
		"virtualMachineTemplate.spec.template.spec.volumes.downwardAPI", "virtualMachineTemplate.spec.template.spec.volumes.downwardMetrics",
		"virtualMachineTemplate.spec.template.spec.utilityVolumes", "virtualMachineTemplate.spec.template.spec.domain.devices.filesystems",
		"virtualMachineTemplate.spec.template.spec.networks", "virtualMachineTemplate.spec.template.spec.domain.devices.interfaces",
		"virtualMachineTemplate.spec.template.spec.priorityClassName",
		"virtualMachineTemplate.spec.dataVolumeTemplates.metadata",
		"virtualMachineTemplate.spec.dataVolumeTemplates.spec.source.pvc", "virtualMachineTemplate.spec.dataVolumeTemplates.spec.source.snapshot",
		"virtualMachineTemplate.spec.dataVolumeTemplates.spec.sourceRef",
		"virtualMachineTemplate.spec.dataVolumeTemplates.spec.pvc.dataSource", "virtualMachineTemplate.spec.dataVolumeTemplates.spec.pvc.dataSourceRef",
		"virtualMachineTemplate.spec.dataVolumeTemplates.spec.pvc.volumeName", "virtualMachineTemplate.spec.dataVolumeTemplates.spec.pvc.selector",
		"virtualMachineTemplate.spec.dataVolumeTemplates.spec.storage.dataSource", "virtualMachineTemplate.spec.dataVolumeTemplates.spec.storage.dataSourceRef",
		"virtualMachineTemplate.spec.dataVolumeTemplates.spec.storage.volumeName", "virtualMachineTemplate.spec.dataVolumeTemplates.spec.storage.selector",
	},
	// Docker, whose containers are privileged on the host of the management cluster.
	"DockerMachine":     {"extraMounts", "customImage", "preLoadImages"},
	"DockerMachinePool": {"template.extraMounts", "template.customImage", "template.preLoadImages"},
	"DevMachine":        {"backend.docker.extraMounts", "backend.docker.customImage", "backend.docker.preLoadImages"},
	// Others.
	"HCloudMachine":           {"publicNetwork"},
	"HetznerBareMetalMachine": {"sshSpec"},
	"NutanixMachine":          {"bootstrapRef", "subnet", "additionalCategories", "project", "dataDisks.dataSource"},
	"IBMVPCMachine":           {"loadBalancerPoolMembers", "primaryNetworkInterface"},
	"IBMPowerVSMachine":       {"workspace", "serviceInstance", "serviceInstanceID", "network"},
	"OCIMachine": {
		"compartmentId", "blockvolumeSpec.compartmentId", "blockvolumeSpec.displayName", "networkDetails", "subnetName", "nsgName", "vnicAttachments", "launchVolumeAttachments",
		"definedTags", "freeformTags",
	},
	"OCIMachinePool": {"ocid", "instanceConfiguration.instanceConfigurationId", "instanceConfiguration.instanceVnicConfiguration", "definedTags", "freeformTags"},
	"OCIManagedMachinePool": {
		"id", "nodePoolNodeConfig.nsgNames", "nodePoolNodeConfig.placementConfigs.subnetName", "nodePoolNodeConfig.nodePoolPodNetworkOptionDetails", "definedTags", "freeformTags",
	},
	"OCIVirtualMachinePool": {"id", "nsgNames", "podConfiguration", "placementConfigs.subnetName", "definedTags", "freeformTags"},
	"ProxmoxMachine":        {"templateID", "templateSelector", "sourceNode", "snapName", "full", "network", "pool", "storage"},
	"HivelocityMachine":     {"status"},
	"LinodeMachine": {
		"credentialsRef", "backupID", "firewallID", "firewallRef", "vpcID", "vpcRef", "interfaces", "linodeInterfaces", "privateIP", "ipv6Options", "osDisk.diskID", "dataDisks",
	},
	"CloudStackMachine": {"networks", "details", "cloudstackAffinityRef"},
	// With role controlplane, its provider adds a worker to the load balancer of the API server (controllers/oscmachine_vm.go).
	"OscMachine": {
		"node.vm.resourceId", "node.vm.role", "node.vm.securityGroupNames", "node.vm.subnetName", "node.vm.publicIp", "node.vm.publicIpPool",
		"node.vm.privateIps", "node.vm.tags", "node.volumes.fromSnapshot", "node.keypair",
	},
	// Cloud Director, whose provider takes and deletes a VM with the name that the template makes, which can also read the
	// environment of the provider (controllers/vcdmachine_controller.go).
	"VCDMachine":                 {"vmNamingTemplate", "extraOvdcNetworks", "bootstrapped", "catalog", "template"},
	"ElementalMachine":           {"hostRef"},
	"MetalMachine":               {"serverRef"},
	"LXCMachine":                 {"devices", "profiles"},
	"MicrovmMachine":             {"networkInterfaces"},
	"RemoteMachine":              {"pool", "provisionJob"},
	"VNodeMachine":               {"podTemplate"},
	"VultrMachine":               {"snapshot_id", "firewall_group_id", "vpc_id", "vpc2_id", "vpc_only"},
	"IonosCloudMachine":          {"datacenterID", "networkID", "additionalNetworks", "failoverIP", "ipv4PoolRef", "ipv6PoolRef"},
	"ScalewayMachine":            {"securityGroup", "publicNetwork"},
	"ScalewayManagedMachinePool": {"securityGroupID", "publicIPDisabled"},
	"DOMachine":                  {"additionalTags"},
	"HarvesterMachine":           {"networks", "networkConfig", "vmNetworkConfig"},
	"MaasMachine":                {"parent", "resourcePool", "lxd"},
	"PacketMachine":              {"tags"},
	"ElfMachine":                 {"template", "network", "failureDomains"},
	"ONEMachine":                 {"templateName"},
	"ByoMachine":                 {"installerRef"},
	// A bootstrap configuration that makes a control plane of a worker, as generateType of Talos does.
	"KairosConfig": {"role", "controlPlaneRole", "manifests"},
}
