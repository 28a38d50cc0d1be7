// SPDX-License-Identifier: Apache-2.0

// Package doctor looks for what is wrong in an installation, or will be: each check is a function over what both clusters have,
// and returns findings that name the object and say what to do.
package doctor

import (
	"context"
	"fmt"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// Level is how bad a finding is.
type Level string

const (
	// Problem is something that does not work.
	Problem Level = "problem"
	// Warning is something that works, and can cost Nodes, money or time.
	Warning Level = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	Level Level `json:"level"`
	// Check is the name of the check that has found it.
	Check string `json:"check"`
	// Object is the kind and name of what it is about.
	Object  string `json:"object"`
	Message string `json:"message"`
	// Do is what to do.
	Do string `json:"do"`
}

// Check looks for one kind of mistake.
type Check struct {
	Name string
	// Sound is what is true if the check finds nothing.
	Sound string
	run   func(context.Context, *view.View) ([]Finding, error)
}

// Checks are all checks, in the order in which they are printed.
var Checks = []Check{
	{"Operator", "an operator runs and leads", operatorLeads},
	{"Versions", "the operator is tested with the versions of Kubernetes and Cluster API", versionsAreTested},
	{"Rights", "the operator has its rights in both clusters", rightsAreComplete},
	{"Credentials", "the operator's credentials for the other cluster last for more than 3 days, or most of their time is left", credentialsLast},
	{"Cluster", "Machines can be created in the Cluster", clusterIsReady},
	{"NodePools", "each NodePool has a template, and is Ready", nodePoolsAreReady},
	{"Templates", "everything that templates describe can be launched, and Nodes have what was declared", templatesAreHealthy},
	{"Catalogs", "all instance types of catalogs can be used", catalogsAreValid},
	{"Replicas", "only the operator sets the replicas of its objects", onlyOneAutoscaler},
	{"HealthChecks", "no MachineHealthCheck deletes Machines before Karpenter gives up on them", healthChecksWait},
	{"Links", "each Machine serves one NodeClaim, and both have the same provider ID", linksAgree},
	{"Room", "a Node that Karpenter does not manage has room for the operator", operatorHasRoom},
}

// Result is what one check has found.
type Result struct {
	Check string `json:"check"`
	// Sound is what is true if nothing was found.
	Sound    string    `json:"sound"`
	Findings []Finding `json:"findings,omitempty"`
	// Error is why the check could not be made; empty if it could.
	Error string `json:"error,omitempty"`
}

// Examine makes all checks.
func Examine(ctx context.Context, v *view.View) []Result {
	return lo.Map(Checks, func(check Check, _ int) Result {
		result := Result{Check: check.Name, Sound: check.Sound}
		findings, err := check.run(ctx, v)
		if err != nil {
			result.Error = err.Error()
		}
		for i := range findings {
			findings[i].Check = check.Name
		}
		result.Findings = findings
		return result
	})
}

// HasProblems reports whether something does not work, or could not be examined.
func HasProblems(results []Result) bool {
	return lo.SomeBy(results, func(r Result) bool {
		return r.Error != "" || lo.SomeBy(r.Findings, func(f Finding) bool { return f.Level == Problem })
	})
}

func problem(object, do, message string, args ...any) Finding {
	return Finding{Level: Problem, Object: object, Message: fmt.Sprintf(message, args...), Do: do}
}

func warning(object, do, message string, args ...any) Finding {
	return Finding{Level: Warning, Object: object, Message: fmt.Sprintf(message, args...), Do: do}
}
