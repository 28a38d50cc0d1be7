// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"os"
	"strings"
	"testing"
)

func TestClassify(t *testing.T) {
	for name, test := range map[string]struct {
		reason, message string
		want            Kind // "" for none
	}{
		"AWS spot capacity": {message: noCapacity, want: InsufficientCapacity},
		"AWS zone capacity": {
			message: "operation error EC2: RunInstances, https response error StatusCode: 500, RequestID: 49d0, api error InsufficientInstanceCapacity: We currently do not have sufficient m6i.xlarge capacity in the Availability Zone you requested (us-east-2a).",
			want:    InsufficientCapacity,
		},
		"AWS type not in zone": {
			message: "Unsupported: Your requested instance type (m5.xlarge) is not supported in your requested Availability Zone (us-east-1e).",
			want:    InsufficientCapacity,
		},
		"AWS vCPU quota": {
			message: "api error VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to.",
			want:    QuotaExceeded,
		},
		"Azure SKU": {
			reason:  "Failed",
			message: `virtualmachine failed to create or update. err: Code="SkuNotAvailable" Message="The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: Standard_D4s_v5' is currently not available in location 'westus'."`,
			want:    InsufficientCapacity,
		},
		"Azure zone": {
			message: `Code="ZonalAllocationFailed" Message="Allocation failed. We do not have sufficient capacity for the requested VM size Standard_D4 in zone 1."`,
			want:    InsufficientCapacity,
		},
		"Azure constraints": {
			message: `original error: Code="OverconstrainedZonalAllocationRequest" Message="Allocation failed. VM(s) with the following constraints cannot be allocated."`,
			want:    InsufficientCapacity,
		},
		"Azure cores": {
			message: `Code="OperationNotAllowed" Message="Operation could not be completed as it results in exceeding approved Total Regional Cores quota."`,
			want:    QuotaExceeded,
		},
		"Google Cloud zone": {
			message: "Code: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS, Message: The zone does not have enough resources available to fulfill the request, '(resource type:compute)'.",
			want:    InsufficientCapacity,
		},
		"Google Cloud quota": {message: "QUOTA_EXCEEDED: Quota 'CPUS' exceeded. Limit: 24.0 in region us-central1.", want: QuotaExceeded},
		"Hetzner location": {
			reason:  "NotReady",
			message: "* ServerCreated: Server creation failed with an irrecoverable error: error during placement (resource_unavailable, 8a6b). If the requested resources (server type or location) become available again, delete the Machine to trigger a new creation attempt.",
			want:    InsufficientCapacity,
		},
		"Hetzner limit":   {message: "failed to create server: server limit reached (resource_limit_exceeded, 4710)", want: QuotaExceeded},
		"IBM Power":       {reason: "InstanceErrored", message: "No compute node with sufficient memory", want: MachineFailed},
		"Linode limit":    {reason: "CreateError", message: "[400] Account Limit reached. Please open a support ticket.", want: QuotaExceeded},
		"Metal3":          {message: "failed to associate the Metal3Machine to a BareMetalHost: no available host found. Requeuing. Object will be requeued after 30s", want: InsufficientCapacity},
		"Oracle host":     {message: "Error returned by Compute Service. Http Status Code: 500. Error Code: InternalError. Message: Out of host capacity.", want: InsufficientCapacity},
		"Oracle limit":    {message: "Service error:LimitExceeded. The following service limits were exceeded: standard-e2-core-count.", want: QuotaExceeded},
		"OpenStack host":  {reason: "InstanceStateError", message: "Server entered ERROR state: No valid host was found. There are not enough hosts available.", want: InsufficientCapacity},
		"OpenStack quota": {message: "Quota exceeded for cores, instances: Requested 8, 1, but already used 56, 20 of 64, 20 cores, instances", want: QuotaExceeded},
		"OpenStack ports": {message: "Quota exceeded for resources: ['port'].", want: QuotaExceeded},
		"OpenStack error": {reason: "InstanceStateError", message: "Instance is in ERROR state", want: MachineFailed},
		"Proxmox":         {reason: "VMProvisionFailed", message: "cannot reserve 20B of memory on node pve1: 10B available memory left", want: InsufficientCapacity},

		"vSphere CPU":       {reason: "TaskFailure", message: noCPU, want: InsufficientCapacity},
		"vSphere memory":    {reason: "TaskFailure", message: "The host does not have sufficient Memory resources to satisfy the reservation.", want: InsufficientCapacity},
		"vSphere cores":     {reason: "TaskFailure", message: "Insufficient capacity on each physical CPU.", want: InsufficientCapacity},
		"vSphere pool":      {reason: "TaskFailure", message: "The available Memory resources in the parent resource pool are insufficient for the operation.", want: InsufficientCapacity},
		"vSphere HA":        {reason: "TaskFailure", message: "Insufficient resources to satisfy configured failover level for vSphere HA.", want: InsufficientCapacity},
		"vSphere datastore": {reason: "TaskFailure", message: "Insufficient disk space on datastore 'vm-store'.", want: InsufficientCapacity},
		"vSphere DRS":       {reason: "TaskFailure", message: "No host is compatible with the virtual machine.", want: InsufficientCapacity},

		"quota before capacity": {message: "AllocationFailed: QuotaExceeded", want: QuotaExceeded},
		"capacity before other": {reason: "InstanceErrored", message: "Out of host capacity", want: InsufficientCapacity},
		"in any case":           {message: "OUT OF HOST CAPACITY", want: InsufficientCapacity},

		"nothing":                     {},
		"waiting for bootstrap":       {reason: "WaitingForBootstrapData"},
		"waiting for a reservation":   {message: "waiting for capacity reservation cr-1 to become active"},
		"capacity on the way":         {message: "capacity is being added to host group"},
		"a quota that is kept":        {message: "quota check passed"},
		"setting a quota":             {message: "cpuCfsQuota is not supported"},
		"provisioning":                {reason: "InstanceProvisionStarted"},
		"a failure that is retried":   {reason: "InstanceProvisionFailed", message: "0 of 2 completed"},
		"a summary":                   {reason: "NotReady", message: "* ServerProvisioned: Server is starting"},
		"AWS throttling":              {message: "api error RequestLimitExceeded: Request limit exceeded."},
		"Google Cloud throttling":     {message: "googleapi: Error 403: Quota exceeded for quota metric 'Queries' and limit 'Queries per minute', rateLimitExceeded"},
		"Hetzner throttling":          {message: "rate limit exceeded (rate_limit_exceeded)"},
		"Azure, not allowed":          {message: `Code="OperationNotAllowed" Message="The operation is not allowed while the disk is being attached."`},
		"a part of a longer word":     {message: "NoAllocationFailedYet"},
		"vSphere, a task that failed": {reason: "TaskFailure", message: "Invalid configuration for device '0'."},
		"vSphere, no template":        {reason: "CloningFailed", message: `unable to find template by name "no-such-template"`},
		"KubeVirt waits for the node": {reason: "Unschedulable", message: "0/3 nodes are available: 3 Insufficient memory."},
	} {
		t.Run(name, func(t *testing.T) {
			kind, known := Classify(test.reason, test.message)
			if kind != test.want || known != (test.want != "") {
				t.Errorf("got %q, %t; want %q", kind, known, test.want)
			}
		})
	}
}

// docs/failures.md lists all patterns for users.
func TestPatternsAreDocumented(t *testing.T) {
	document, err := os.ReadFile("../../docs/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(document)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			rows[strings.TrimSpace(cells[1])+"|"+strings.Trim(cells[2], " `")] += line
		}
	}
	for provider, ofProvider := range patterns {
		for _, p := range ofProvider {
			if row := rows[provider+"|"+string(p.kind)]; !strings.Contains(row, "`"+p.words+"`") {
				t.Errorf("docs/failures.md does not have %q in a row of %s and %s", p.words, provider, p.kind)
			}
		}
	}
}
