// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRules(t *testing.T) {
	used := map[int]bool{}
	for _, tc := range []struct {
		bad  string
		want []string // the phrases in bad
		good string
	}{
		{
			bad:  "Write tells whether the request asked for a change.",
			want: []string{"tells whether"},
			good: "Write reports whether the request asked for a change.",
		},
		{
			bad:  "The operator cannot tell whether a Machine has failed.",
			want: []string{"tell whether"},
			good: "The operator cannot determine whether a Machine has failed.",
		},
		{
			bad:  "What tells what was asked for.",
			want: []string{"tells what"},
			good: "What describes the request.",
		},
		{
			bad:  "A failure is told on the template first.",
			want: []string{"is told"},
			good: "A failure is reported on the template first. The process leaves when it is told to.",
		},
		{
			bad:  "The label on the Machine says that it is taken.",
			want: []string{"says that"},
			good: "The label on the Machine shows that it is linked. Comments say why.",
		},
		{
			bad:  "problem says why a reference cannot be used.",
			want: []string{"problem says why"},
			good: "problem returns why a reference cannot be used.",
		},
		{
			bad:  "Delete asks the API server before it returns.",
			want: []string{"asks the API server"},
			good: "Delete reads from the API server before it returns.",
		},
		{
			bad:  "The API server is asked whether the Machine exists.",
			want: []string{"is asked whether"},
			good: "Delete gets the Machine from the API server.",
		},
		{
			bad:  "The operator does not mind copies of other Clusters.",
			want: []string{"does not mind"},
			good: "The operator ignores copies of other Clusters.",
		},
		{
			bad:  "Karpenter does not call Delete for want of a provider ID.",
			want: []string{"for want of"},
			good: "Karpenter does not call Delete because there is no provider ID.",
		},
		{
			bad:  "The name is unique, for it is made from the UID.",
			want: []string{", for it is"},
			good: "The name is unique because it contains the UID. A chart that asks for it is rejected.",
		},
		{
			bad:  "Nothing is gained by waiting.",
			want: []string{"Nothing is gained"},
			good: "Waiting does not help.",
		},
		{
			bad:  "The operator chooses another Machine to go.",
			want: []string{"chooses another Machine to go"},
			good: "The operator marks another Machine for deletion.",
		},
		{
			bad:  "Machines are chosen to go in this order.",
			want: []string{"chosen to go"},
			good: "Machines are marked for deletion in this order.",
		},
		{
			bad:  "A Machine is let go when its wait is over. The operator lets the Machine go. Then it lets go of it.",
			want: []string{"let go", "lets the Machine go", "lets go"},
			good: "A Machine is deletable when its wait is over. GOTOOLCHAIN lets the Go command choose. It lets go test run.",
		},
		{
			bad:  "A Machine is held up by its hook, which holds it up.",
			want: []string{"held up", "holds it up"},
			good: "A Machine is blocked by its hook. The queue holds up to 10 Machines.",
		},
		{
			bad:  "The operator frees the Machine.",
			want: []string{"frees the Machine"},
			good: "The operator removes the hooks of the Machine, which frees memory.",
		},
		{
			bad:  "The operator releases the Machine whose NodeClaim is deleted.",
			want: []string{"releases the Machine"},
			good: "The operator unlinks the Machine whose NodeClaim is deleted. It releases the lease.",
		},
		{
			bad:  "The claim stays until its Machine is gone.",
			want: []string{"is gone"},
			good: "The claim stays until its Machine no longer exists.",
		},
		{
			bad:  "An instance that is going does not count, nor if its Machine is going.",
			want: []string{"Machine is going"},
			good: "An instance that is being deleted does not count, nor if its Machine is being deleted. The Machine is going to be deleted.",
		},
		{
			bad:  "When the pool goes, so does the Machine. One that goes, does not count.",
			want: []string{"pool goes,", "One that goes,"},
			good: "When the pool is deleted, so is the Machine. If the Node goes NotReady, it is replaced.",
		},
		{
			bad:  "Copies are made for offerings in use.",
			want: []string{"Copies are made"},
			good: "Copies are generated for offerings in use. Decisions are made by pure functions.",
		},
		{
			bad:  "The MachineSet makes another Machine.",
			want: []string{"makes another Machine"},
			good: "The MachineSet creates another Machine, which makes the Machine available.",
		},
		{
			bad:  "The operator disowns the MachineDeployment.",
			want: []string{"disowns"},
			good: "The operator ends the adoption of the MachineDeployment.",
		},
		{
			bad:  "The number of own replicas is wrong.",
			want: []string{"own replicas"},
			good: "The number of unmanaged replicas is wrong. Each MachineSet has its own replicas.",
		},
		{
			bad:  "A machine that could not be had counts as failed.",
			want: []string{"not be had"},
			good: "A machine that could not be launched counts as failed.",
		},
		{
			bad:  "The offering is left alone until noon, and Nodes stay for a while.",
			want: []string{"left alone until", "for a while"},
			good: "The offering is unavailable until 14:05. Machines of other controllers are left alone.",
		},
		{
			bad:  "The claim was moved to another offering: Moved to offering a.",
			want: []string{"moved to another offering", "Moved to offering"},
			good: "The NodeClaim was relaunched with another offering.",
		},
		{
			bad:  "The launch stands still.",
			want: []string{"stands still"},
			good: "The launch is stalled.",
		},
		{
			bad:  "The launch is halted.",
			want: []string{"is halted"},
			good: "The launch is stalled.",
		},
		{
			bad:  "The operator lets the cache settle.",
			want: []string{"lets the cache settle"},
			good: "The operator waits for the settle time of the cache.",
		},
		{
			bad:  "The reconciler starts anew.",
			want: []string{"anew"},
			good: "The reconciler starts again.",
		},
		{
			bad:  "The launch fails once more, and once more as before.",
			want: []string{"once more", "once more"},
			good: "The launch fails again. It continues once more replicas exist.",
		},
		{
			bad:  "The operator tries again and again.",
			want: []string{"again and again"},
			good: "The operator tries repeatedly.",
		},
		{
			bad:  "It failed a moment ago, the other one long ago.",
			want: []string{"a moment ago", "long ago"},
			good: "It failed within the last 10 s, the other one more than 30 min ago.",
		},
		{
			bad:  "The request is repeated soon.",
			want: []string{"soon."},
			good: "The request is repeated within 10 s, as soon as possible.",
		},
		{
			bad:  "Times ahead are set to now, since they lie ahead.",
			want: []string{"Times ahead", "lie ahead"},
			good: "Timestamps in the future are set to now.",
		},
		{
			bad:  "Whoever writes templates can do that.",
			want: []string{"Whoever"},
			good: "Users who write templates can do that.",
		},
		{
			bad:  "Somebody changes the replicas, or someone else does.",
			want: []string{"Somebody", "someone else"},
			good: "Another controller changes the replicas.",
		},
		{
			bad:  "The patch keeps what others set.",
			want: []string{"what others set"},
			good: "The patch keeps fields of other field managers.",
		},
		{
			bad:  "Mend the reference; it is mended then.",
			want: []string{"Mend", "mended"},
			good: "Fix the reference. We recommend that you amend it.",
		},
		{
			bad:  "The plan is what is to be done.",
			want: []string{"what is to be"},
			good: "The plan lists the writes.",
		},
		{
			bad:  "The Machine has not a Node, and the labels that it has not are empty.",
			want: []string{"has not a", "has not are"},
			good: "The Machine lacks a Node. It has not registered.",
		},
		{
			bad:  "There are none of that name.",
			want: []string{"none of that name"},
			good: "No Cluster named a exists.",
		},
	} {
		for i, r := range rules {
			used[i] = used[i] || len(r.matches(tc.bad)) > 0
		}
		var got []string
		for _, found := range (passage{{text: tc.bad}}).findings() {
			got = append(got, found.phrase)
			if found.write == "" {
				t.Errorf("%q: no replacement for %q", tc.bad, found.phrase)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.bad, diff)
		}
		if found := (passage{{text: tc.good}}).findings(); len(found) > 0 {
			t.Errorf("%q: got %q, want nothing", tc.good, found[0].phrase)
		}
	}
	for i, r := range rules {
		if !used[i] {
			t.Errorf("no case for %s", r.find)
		}
	}
}
