// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// Stall is why Cluster API or a provider does nothing for a claim. What was not tried is no evidence
// against an offering, so the claim waits.
type Stall struct {
	// Reason is v1alpha1.ReasonBlocked or v1alpha1.ReasonNoProgress.
	Reason string
	// Message repeats what Cluster API reports, or names the object that nothing acts on.
	Message string
}

func noProgress(format string, args ...any) *Stall {
	return &Stall{Reason: v1alpha1.ReasonNoProgress, Message: fmt.Sprintf(format, args...)}
}

// whyStalled returns why the launch of a claim is stalled; nil if it is not, or the claim does not wait.
func (s *Snapshot) whyStalled(claim *karpv1.NodeClaim) *Stall {
	if !nodeclaims.NeedsMachine(claim) || s.exceeding.Has(claim.UID) {
		return nil
	}
	if name, served := s.Plan.Served[claim.UID]; served {
		return s.machineStalls[name]
	}
	if s.nameTaken(claim) || s.hadMachine(claim) || s.unusable != "" || s.unasked() && nodeclaims.IsRejected(claim) {
		return nil
	}
	stall := s.stall
	if stall == nil && s.Resource != nil && s.unasked() {
		stall = noProgress("the replicas of %s could not be set to %d: see the log of the operator", s.Resource, s.Plan.Replicas)
	}
	if stall != nil && stall.Reason == v1alpha1.ReasonNoProgress && s.Now.Before(s.waitsSince(claim).Add(s.progressTimeout())) {
		return nil
	}
	return stall
}

// unasked reports whether the operator has not requested all Machines that claims wait for: the
// resource does not exist, or its replicas are not raised yet.
func (s *Snapshot) unasked() bool {
	return s.Resource == nil || s.Resource.Replicas() < s.Plan.Replicas
}

// Stalled reports whether Cluster API neither creates nor removes Machines of the resource now.
func (s *Snapshot) Stalled() bool { return s.stall != nil }

// Blocked reports whether Cluster API reports why it creates no Machines of the resource now.
func (s *Snapshot) Blocked() bool {
	return s.stall != nil && s.stall.Reason == v1alpha1.ReasonBlocked
}

// progressTimeout returns for how long nothing may act on an object before its launch is stalled.
func (s *Snapshot) progressTimeout() time.Duration {
	return min(s.times().NoProgress, s.Settings.LaunchTimeout)
}

// stallOf returns why Cluster API creates no Machines of a MachineDeployment; nil if it does.
func stallOf(deployment *clusterv1.MachineDeployment, sets []clusterv1.MachineSet) *Stall {
	name := client.ObjectKeyFromObject(deployment)
	switch {
	case !deployment.DeletionTimestamp.IsZero():
		return noProgress("MachineDeployment %s is being deleted and creates no Machines: wait until its Machines no longer exist", name)
	case deployment.Status.ObservedGeneration < deployment.Generation:
		return noProgress("Cluster API has not acted on MachineDeployment %s: check that its controllers run", name)
	case len(sets) == 0:
		return noProgress("Cluster API has created no MachineSet for MachineDeployment %s: check that its controllers run", name)
	}
	for i := range sets {
		set := &sets[i]
		if scalable.EndsFirst(set) {
			return noProgress("MachineSet %s is being deleted, and Cluster API creates the next one when its Machines no longer exist: wait until then", client.ObjectKeyFromObject(set))
		}
		if why := blockedBy(set); why != "" {
			return &Stall{Reason: v1alpha1.ReasonBlocked, Message: fmt.Sprintf("MachineSet %s creates no Machines: %s", client.ObjectKeyFromObject(set), why)}
		}
		if set.Status.ObservedGeneration >= set.Generation {
			continue
		}
		problem := creationProblem(set)
		switch {
		case problem == "":
			return noProgress("Cluster API has not acted on MachineSet %s: check that its controllers run", client.ObjectKeyFromObject(set))
		case !isRejection(problem):
			return noProgress("MachineSet %s cannot create Machines: %s", client.ObjectKeyFromObject(set), problem)
		}
	}
	return nil
}

// blockedBy returns why a MachineSet reports that it creates no Machines, which are failing
// preflight checks and missing templates; empty if it does not (Cluster API:
// core/reconcilers/machineset/machineset_controller_status.go, setScalingUpCondition).
func blockedBy(set *clusterv1.MachineSet) string {
	condition := conditions.Get(set, clusterv1.MachineSetScalingUpCondition)
	if condition == nil {
		return ""
	}
	_, list, _ := strings.Cut(condition.Message, " is blocked because:\n")
	return strings.Join(lo.Map(strings.Split(list, "\n"), func(line string, _ int) string { return strings.TrimPrefix(line, "* ") }), "; ")
}

// creationProblem returns the error with which a MachineSet failed to create Machines; empty
// if it did not fail. Only the condition of the older API version has it (Cluster API:
// core/reconcilers/machineset/machineset_controller.go, createMachines).
func creationProblem(set *clusterv1.MachineSet) string {
	if set.Status.Deprecated == nil || set.Status.Deprecated.V1Beta1 == nil {
		return ""
	}
	created, found := lo.Find(set.Status.Deprecated.V1Beta1.Conditions, func(c clusterv1.Condition) bool { //nolint:staticcheck // No other field has it.
		return c.Type == clusterv1.MachinesCreatedV1Beta1Condition
	})
	if !found || created.Status == "True" {
		return ""
	}
	return created.Message
}

// isRejection reports whether an error that Cluster API reports shows that the API server or a
// webhook rejects the object. The offering can be the cause.
func isRejection(problem string) bool {
	return lo.SomeBy([]string{"denied the request", " is invalid: ", " is forbidden: "}, func(text string) bool { return strings.Contains(problem, text) })
}
