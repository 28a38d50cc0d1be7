// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"strings"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/internal/budget"
)

func TestBrief(t *testing.T) {
	// What Cluster API Provider AWS v2.13.0 reports begins like that.
	const client = "InstanceProvisionFailed: failed to create AWSMachine instance: failed to run instance: operation error EC2: RunInstances, " +
		"exceeded maximum number of attempts, 3, https response error StatusCode: 500, RequestID: 8c9d5d3b-6a36-4f7f-9d0e-3a8f6f6f7f4c, "
	const spot = "api error InsufficientInstanceCapacity: There is no Spot capacity available that matches your request."
	const onDemand = "api error InsufficientInstanceCapacity: We currently do not have sufficient m6i.xlarge capacity in the Availability Zone you " +
		"requested (us-east-1a). Our system will be working on provisioning additional capacity. You can currently get m6i.xlarge capacity by not " +
		"specifying an Availability Zone in your request or choosing us-east-1b, us-east-1c."
	long := strings.Repeat("a long text ", 40)
	for name, tc := range map[string]struct {
		kind    Kind
		message string
		want    string
	}{
		"short":                            {InsufficientCapacity, spot, spot},
		"long, with a short answer":        {InsufficientCapacity, client + spot, "… " + spot},
		"long, with a long answer":         {InsufficientCapacity, client + onDemand, budget.Text("… "+onDemand, budget.Mark)},
		"in a sentence":                    {InsufficientCapacity, long + "Unsupported: Your requested instance type (m5.xlarge) is not supported in your requested Availability Zone (us-east-1e).", "… Your requested instance type (m5.xlarge) is not supported in your requested Availability Zone (us-east-1e)."},
		"the words are near the beginning": {InsufficientCapacity, "Failed: " + spot + long, budget.Text("Failed: "+spot+long, budget.Mark)},
		"words of another kind":            {MachineFailed, client + spot, budget.Ends(client+spot, budget.Mark)},
		"no words":                         {MachineFailed, long, budget.Ends(long, budget.Mark)},
		"a part of a longer word":          {QuotaExceeded, long + "RequestVcpuLimitExceeded: x", budget.Ends(long+"RequestVcpuLimitExceeded: x", budget.Mark)},
		"longer in lower case":             {InsufficientCapacity, strings.Repeat("Ⱥ", 200) + spot, budget.Ends(strings.Repeat("Ⱥ", 200)+spot, budget.Mark)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Failure{Kind: tc.kind, Message: tc.message}).Brief(budget.Mark); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
