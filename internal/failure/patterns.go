// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// order is the precedence of kinds if several match: a higher quota always helps, and
// waiting for capacity can help.
var order = []Kind{QuotaExceeded, InsufficientCapacity, MachineFailed}

// pattern has words that an infrastructure uses for one kind of failure, and for nothing
// that ends by itself.
type pattern struct {
	kind  Kind
	words string
}

// patterns are the patterns of each provider, each with its source.
var patterns = map[string][]pattern{
	// cluster-api: api/deprecated/errors/consts.go, MachineStatusError.
	"Cluster API": {
		{InsufficientCapacity, "InsufficientResources"},
	},
	// Codes of the EC2 API, as in aws/karpenter-provider-aws: pkg/errors/errors.go,
	// aws/aws-parallelcluster-node: src/slurm_plugin/slurm_resources.py (which has
	// "Unsupported" too; here its message, because the word is too common) and
	// gardener/machine-controller-manager-provider-aws: pkg/aws/errors/codes.go.
	"AWS": {
		{QuotaExceeded, "VcpuLimitExceeded"},
		{QuotaExceeded, "InstanceLimitExceeded"},
		{QuotaExceeded, "MaxSpotInstanceCountExceeded"},
		{InsufficientCapacity, "InsufficientInstanceCapacity"},
		{InsufficientCapacity, "InsufficientHostCapacity"},
		{InsufficientCapacity, "InsufficientReservedInstanceCapacity"},
		{InsufficientCapacity, "ReservationCapacityExceeded"},
		{InsufficientCapacity, "UnfulfillableCapacity"},
		{InsufficientCapacity, "InsufficientFreeAddressesInSubnet"},
		{InsufficientCapacity, "SpotMaxPriceTooLow"},
		{InsufficientCapacity, "is not supported in your requested Availability Zone"},
	},
	// Codes and messages of Azure Resource Manager, as in
	// Azure/karpenter-provider-azure: pkg/fake/aksmachinesapi.go and
	// pkg/providers/instance/offerings.
	"Azure": {
		{QuotaExceeded, "QuotaExceeded"},
		{QuotaExceeded, "results in exceeding approved"},
		{InsufficientCapacity, "SkuNotAvailable"},
		{InsufficientCapacity, "AllocationFailed"},
		{InsufficientCapacity, "ZonalAllocationFailed"},
		{InsufficientCapacity, "OverconstrainedAllocationRequest"},
		{InsufficientCapacity, "OverconstrainedZonalAllocationRequest"},
	},
	// Codes of Compute Engine, as in kubernetes/autoscaler:
	// cluster-autoscaler/cloudprovider/gce/autoscaling_gce_client.go.
	"Google Cloud": {
		{QuotaExceeded, "QUOTA_EXCEEDED"},
		{InsufficientCapacity, "RESOURCE_POOL_EXHAUSTED"},
		{InsufficientCapacity, "ZONE_RESOURCE_POOL_EXHAUSTED"},
		{InsufficientCapacity, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"},
	},
	// hetznercloud/hcloud-go: hcloud/error.go; syself/cluster-api-provider-hetzner:
	// pkg/services/hcloud/server/server.go, which does not retry after the last one.
	"Hetzner": {
		{QuotaExceeded, "resource_limit_exceeded"},
		{InsufficientCapacity, "resource_unavailable"},
		{MachineFailed, "failed with an irrecoverable error"},
	},
	// kubernetes-sigs/cluster-api-provider-ibmcloud:
	// internal/controllers/powervs/ibmpowervsmachine_controller.go, which does not retry.
	"IBM Cloud": {
		{MachineFailed, "InstanceErrored"},
	},
	// Linode API, as in pulumi/templates issue 184;
	// linode/cluster-api-provider-linode: internal/controller/linodemachine_controller.go
	// reports status 400 as a terminal failure.
	"Linode": {
		{QuotaExceeded, "Account Limit reached"},
	},
	// metal3-io/cluster-api-provider-metal3: baremetal/metal3machine_manager.go.
	"Metal3": {
		{InsufficientCapacity, "no available host found"},
	},
	// https://docs.oracle.com/en-us/iaas/Content/API/References/apierrors.htm has
	// LimitExceeded and QuotaExceeded, which is Azure's word, too;
	// oracle/cluster-api-provider-oci: cloud/ociutil/ociutil.go has the last one.
	"Oracle Cloud": {
		{QuotaExceeded, "LimitExceeded"},
		{InsufficientCapacity, "Out of host capacity"},
	},
	// openstack/nova: nova/exception.py (TooManyInstances, NoValidHost) and
	// openstack/neutron-lib: neutron_lib/exceptions/__init__.py (OverQuota, for ports);
	// kubernetes-sigs/cluster-api-provider-openstack:
	// controllers/openstackmachine_controller.go for the last one: Nova never leaves
	// that state, and the reason InstanceStateError is also used while it retries.
	"OpenStack": {
		{QuotaExceeded, "Quota exceeded for cores"},
		{QuotaExceeded, "Quota exceeded for instances"},
		{QuotaExceeded, "Quota exceeded for ram"},
		{QuotaExceeded, "Quota exceeded for resources"},
		{InsufficientCapacity, "No valid host was found"},
		{MachineFailed, "Instance is in ERROR state"},
	},
	// ionos-cloud/cluster-api-provider-proxmox:
	// internal/service/scheduler/vmscheduler.go, InsufficientMemoryError; the provider
	// does not retry (internal/controller/proxmoxmachine_controller.go, HasFailed).
	"Proxmox": {
		{InsufficientCapacity, "available memory left"},
	},
	// Messages of vCenter's faults InsufficientHostCpuCapacityFault and
	// InsufficientHostMemoryCapacityFault, InsufficientPerCpuCapacity, InsufficientCpuResourcesFault
	// and InsufficientMemoryResourcesFault, InsufficientFailoverResourcesFault, NoDiskSpace and
	// NoCompatibleHost, in this order. The last one is what DRS answers if no host has room, and
	// for hosts that differ from what the machine needs. Waiting helps in neither case.
	// kubernetes-sigs/cluster-api-provider-vsphere: pkg/services/govmomi/util.go,
	// checkAndRetryTask, copies them; issues 1920 and 1921 have examples.
	"vSphere": {
		{InsufficientCapacity, "host does not have sufficient CPU resources"},
		{InsufficientCapacity, "host does not have sufficient memory resources"},
		{InsufficientCapacity, "Insufficient capacity on each physical CPU"},
		{InsufficientCapacity, "resources in the parent resource pool are insufficient"},
		{InsufficientCapacity, "Insufficient resources to satisfy configured failover level"},
		{InsufficientCapacity, "Insufficient disk space on datastore"},
		{InsufficientCapacity, "No host is compatible with the virtual machine"},
	},
}

// Classify returns which kind of failure a reason and message mean, if any.
//
// They match a pattern if they contain its words, in upper or lower case, and not as part
// of longer words.
func Classify(reason, message string) (Kind, bool) {
	reason, message = strings.ToLower(reason), strings.ToLower(message)
	best := len(order)
	for _, ofProvider := range patterns {
		for _, p := range ofProvider {
			words := strings.ToLower(p.words)
			if rank(p.kind) < best && (containsWords(reason, words) || containsWords(message, words)) {
				best = rank(p.kind)
			}
		}
	}
	if best == len(order) {
		return "", false
	}
	return order[best], true
}

func rank(kind Kind) int { return slices.Index(order, kind) }

// containsWords reports whether text contains words, with no letter, digit or underscore
// directly before or after them.
func containsWords(text, words string) bool { return indexWords(text, words) >= 0 }

// indexWords returns where text contains words in that way first, and -1 if it does not.
func indexWords(text, words string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], words)
		if at < 0 {
			return -1
		}
		at += from
		from = at + len(words)
		last, _ := utf8.DecodeLastRuneInString(text[:at])
		first, _ := utf8.DecodeRuneInString(text[from:])
		if !isWord(last) && !isWord(first) {
			return at
		}
	}
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
