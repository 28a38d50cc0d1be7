// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// slowAfter is for how long a Machine may have no provider ID, and then no Node, until its claim reports what it waits for.
// Most launches are faster, and cost no write.
const slowAfter = 3 * time.Minute

// maxWait is the maximum length of a message, which is shorter than that of a condition.
const maxWait = 512

// Wait is what a Machine waits for.
type Wait struct {
	// Reason is v1alpha1.ReasonWaitingForBootstrap, ReasonWaitingForInfrastructure or ReasonWaitingForNode.
	Reason string
	// Message names the Machine, and repeats what its objects report.
	Message string
}

// slowAt returns when the Machine of a claim takes longer than usual. With a provider ID, only its Node is missing.
func (s *State) slowAt(claim Claim, machine Machine) time.Time {
	since := s.launchSince(claim, machine)
	if machine.ProviderID != "" {
		since = lo.Latest(since, machine.ProvisionedAt)
	}
	return since.Add(min(slowAfter, s.Durations.LaunchTimeout/2))
}

// waits returns what the Machine of a claim has waited for longer than usual; zero if the claim reports the same already.
func (p *planning) waits(claim Claim) Wait {
	machine, served := p.servedBy(claim)
	if !served || !p.launches(claim) || machine.Node != "" || p.Now.Before(p.slowAt(claim, *machine)) {
		return Wait{}
	}
	waits, shown := machine.waits(), claim.Ready
	waits.Message = lo.Substring(waits.Message, 0, maxWait)
	if shown.Status == metav1.ConditionFalse && shown.Reason == waits.Reason && strings.Contains(shown.Message, machine.Name) && essential(shown.Message) == essential(waits.Message) {
		return Wait{}
	}
	return waits
}

// waits returns what a Machine without a Node waits for.
func (m Machine) waits() Wait {
	switch {
	case m.ProviderID != "":
		return Wait{v1alpha1.ReasonWaitingForNode, fmt.Sprintf("Machine %s has its provider ID, and no Node has joined with it%s", m.Name, m.Infrastructure.problem())}
	case m.Bootstrap.problem() != "":
		return Wait{v1alpha1.ReasonWaitingForBootstrap, fmt.Sprintf("Machine %s has no bootstrap data%s", m.Name, m.Bootstrap.problem())}
	}
	return Wait{v1alpha1.ReasonWaitingForInfrastructure, fmt.Sprintf("Machine %s has no provider ID%s", m.Name, m.waitsFor())}
}

// changing matches what messages count, and times and IDs of requests: words with a digit.
var changing = regexp.MustCompile(`[\w.:-]*\d[\w.:-]*`)

// essential returns a message without what changes from one attempt of a provider to the next.
func essential(message string) string { return changing.ReplaceAllString(message, "#") }

// arrived returns the Machine of a registered claim that reports that the Machine waits; empty if it does not.
func (p *planning) arrived(claim Claim) string {
	machine, served := p.servedBy(claim)
	if !served || !claim.Registered || claim.Leaving || claim.Ready.Status != metav1.ConditionFalse {
		return ""
	}
	return machine.Name
}
