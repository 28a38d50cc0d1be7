// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"slices"
	"testing"

	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/state/prediction"

	controllers "github.com/karpenter-capi/karpenter-capi/internal/controller"
)

// driven are the controllers that a process runs. A process sees all changes of the kinds that they watch.
var driven = []string{
	"nodeclaim.lifecycle", "node.termination",
	"scalableresource", "link", "providerid", "clusterdeletion", "interruption", "machinehash", "registration", "generatedcopy", "machinetemplate",
}

// idle are the controllers of production that a process does not run, with the reasons.
var idle = map[string]string{
	"provisioner":                                 "its part that creates claims is in core_test.go, without Pods",
	"provisioner.trigger.pod":                     "there are no Pods",
	"pendingpods":                                 "there are no Pods",
	"provisioner.trigger.node":                    "there are no Pods",
	"eviction-queue":                              "there are no Pods",
	"disruption":                                  "the user deletes claims instead",
	"disruption.queue":                            "the user deletes claims instead",
	"nodeclaim.expiration":                        "the user deletes claims instead",
	"nodeclaim.disruption":                        "it sets conditions of claims that only disruption reads",
	"nodeclaim.consistency":                       "it sets a condition of claims that nothing reads",
	"nodeclaim.garbagecollection":                 "it needs longer than a run: it deletes claims without an instance after minutes",
	"nodeclaim.hydration":                         "it only changes objects of earlier releases of core",
	"node.hydration":                              "it only changes objects of earlier releases of core",
	"nodeclaim.podevents":                         "there are no Pods",
	"nodeclaim.reboot":                            "nothing asks for a restart, and the tests of internal/remediation interrupt each write of one",
	"remediation":                                 "nothing asks for a restart, and the tests of internal/remediation interrupt each write of one",
	"nodepool.hash":                               "it writes hashes that only disruption reads",
	"nodepool.readiness":                          "it writes the status of NodePools only",
	"nodepool.registrationhealth":                 "it writes the status of NodePools only",
	"nodepool.counter":                            "it writes the status of NodePools only",
	"nodepool.validation":                         "it writes the status of NodePools only",
	"state.daemonset":                             "it writes nothing",
	"state.node":                                  "it writes nothing",
	"state.pod":                                   "it writes nothing",
	"state.nodepool":                              "it writes nothing",
	"state.nodeclaim":                             "it writes nothing",
	"state.nodeclaimgc":                           "it writes nothing",
	"state.pricing":                               "it writes nothing",
	"metrics.pod":                                 "it writes nothing",
	"metrics.nodepool":                            "it writes nothing",
	"operatorpkg.nodeclaim.status":                "it writes nothing",
	"operatorpkg.nodepool.status":                 "it writes nothing",
	"operatorpkg.node.status":                     "it writes nothing",
	"instancetypecatalog":                         "it writes the status of catalogs only",
	"operatorpkg.karpentermachinetemplate.status": "it writes nothing",
}

// absent are kinds of which no scene has an object, so that nothing can be late.
var absent = []string{"CSINode"}

// Production registers no controller that the search does not know, and the search drives no other.
func TestEveryControllerIsKnown(t *testing.T) {
	registered := registeredControllers(t)
	for _, c := range registered {
		if _, isIdle := idle[c.name]; isIdle == slices.Contains(driven, c.name) {
			t.Errorf("controller %s must be either in driven, or in idle with a reason", c.name)
		}
	}
	if want := len(driven) + len(idle); len(registered) != want {
		t.Errorf("%d controllers are registered, and the search knows %d", len(registered), want)
	}
	p := newProcess(newScene(machineDeployment))
	if len(p.controllers) != len(driven) {
		t.Errorf("a process has %d controllers, want %d", len(p.controllers), len(driven))
	}
	for _, c := range p.controllers {
		for _, kind := range c.kinds() {
			if !slices.Contains(kinds, kind) && !slices.Contains(absent, kind) {
				t.Errorf("controller %s has a source of %s, which must be in the cache of a process", c.name, kind)
			}
		}
	}
}

// registeredControllers returns what production registers.
func registeredControllers(t *testing.T) []*queued {
	p := newProcess(newScene(machineDeployment))
	op := p.operator()
	op.InstanceTypeStore, op.PredictionStore = nodeoverlay.NewInstanceTypeStore(), prediction.NewStore()
	if _, err := controllers.Setup(p.ctx, op); err != nil {
		t.Fatal(err)
	}
	return op.Manager.(*registry).controllers
}
