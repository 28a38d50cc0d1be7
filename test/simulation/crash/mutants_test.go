// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// mutant is a bug of the operator, planted in its clients, its watches or its queues.
type mutant struct {
	name string
	// client is what differs in the client of a process with the bug.
	client interceptor.Funcs
	// hidden reports whether a list from the cache is empty.
	hidden func(actor, kind string, options client.ListOptions) bool
	// cached returns whether a read from the API server is answered from the cache.
	cached func(actor string, object any) bool
	// read changes an object that was read from the API server.
	read func(client.Object)
	// dropped reports whether a controller does not get an event: it lacks the watch, or a predicate drops it.
	dropped func(controller string, c *change) bool
	// ignored is a cluster whose outages are not noticed.
	ignored string
	// forgets is a controller that does not try again after an error.
	forgets string
	// caught are the runs of which one finds it: a kind of resource, a scenario, and a fault or a mode.
	caught string
}

var mutants = []mutant{{
	name:   "links without a precondition",
	caught: "MachineDeployment/hand_over/very_late",
	client: interceptor.Funcs{Patch: withoutPrecondition(links)},
}, {
	name:   "marks Machines for deletion without a precondition",
	caught: "MachineDeployment/spare/old_leader",
	client: interceptor.Funcs{Patch: withoutPrecondition(marks)},
}, {
	name:   "unlinks Machines without a precondition",
	caught: "MachineDeployment/hand_over/late",
	client: interceptor.Funcs{Patch: withoutPrecondition(unlinks)},
}, {
	name:    "does not watch the Cluster in which templates create Machines",
	caught:  "MachinePool/cluster_deleted/lost_reply_restart",
	dropped: lacksWatch("machinetemplate", "Cluster"),
}, {
	name:   "does not check whether another claim has a provider ID",
	caught: "MachineDeployment/blocked_briefly/all",
	hidden: func(actor, kind string, options client.ListOptions) bool {
		if options.FieldSelector == nil || actor != "providerid" || kind != "NodeClaimList" {
			return false
		}
		_, byID := options.FieldSelector.RequiresExactMatch(clients.NodeClaimProviderIDField)
		return byID
	},
}, {
	name:   "reads from the cache whether the claim of a new link is being deleted",
	caught: "MachinePool/early_delete/old_leader_half_blind",
	cached: func(actor string, object any) bool {
		_, claim := object.(*karpv1.NodeClaim)
		return claim && actor == "link"
	},
}, {
	name:   "reads from the cache whether a claim that ends has a Machine",
	caught: "MachineDeployment/spare/stale",
	cached: func(actor string, object any) bool {
		_, machines := object.(*clusterv1.MachineList)
		return machines && actor != "scalableresource" && actor != "link"
	},
}, {
	name:   "passes on replicas that the MachineDeployment controller has not observed",
	caught: "MachineDeployment/slow_controller/withheld",
	read: func(object client.Object) {
		if deployment, is := object.(*clusterv1.MachineDeployment); is {
			deployment.Status.ObservedGeneration = deployment.Generation
		}
	},
}, {
	name:    "ignores outages of the management cluster",
	caught:  "MachinePool/deleted_while_booting/outages",
	ignored: connection.Management,
}, {
	name:    "does not watch the Machines whose provider IDs claims get",
	caught:  "MachineDeployment/scale_out/crash_before",
	dropped: lacksWatch("providerid", "Machine"),
}, {
	name:   "drops the events of Machines that get their provider ID",
	caught: "MachineDeployment/scale_out/crash_before",
	dropped: func(controller string, c *change) bool {
		before, _ := c.before.(*clusterv1.Machine)
		after, _ := c.after.(*clusterv1.Machine)
		return controller == "providerid" && before != nil && after != nil && before.Spec.ProviderID != after.Spec.ProviderID
	},
}, {
	name:    "does not watch the NodeClaims that need Machines",
	caught:  "MachineDeployment/scale_out/crash_before",
	dropped: lacksWatch("scalableresource", "NodeClaim"),
}, {
	name:    "does not watch the Machines that are removed from a resource",
	caught:  "MachineDeployment/slow_end/crash_before",
	dropped: lacksWatch("scalableresource", "Machine"),
}, {
	name:    "does not write a link again after an error",
	caught:  "MachinePool/failure/refused",
	forgets: "link",
}, {
	name:   "drops the events of copies that are deleted",
	caught: "MachineDeployment/copy_deleted/stale",
	dropped: func(controller string, c *change) bool {
		return controller == "generatedcopy" && c.kind == infrastructureKind && c.after == nil
	},
}, {
	name:    "drops the events of Nodes whose instance ends",
	caught:  "MachineDeployment/interrupted/stale",
	dropped: lacksUpdates("interruption", "Node"),
}, {
	name:    "drops the events of Nodes whose taints are restored",
	caught:  "MachinePool/overwritten/outdated",
	dropped: lacksUpdates("registration", "Node"),
}, {
	name:    "drops the events of claims whose hashes are of another release",
	caught:  "MachinePool/overwritten/outdated",
	dropped: lacksUpdates("machinehash", "NodeClaim"),
}, {
	name:    "does not watch the Cluster whose Machines have hooks",
	caught:  "MachinePool/cluster_deleted/jumps",
	dropped: lacksWatch("clusterdeletion", "Cluster"),
}, {
	name:   "reads from the cache whether the Cluster of a raised resource is being deleted",
	caught: "MachineDeployment/cluster_deleted/stale",
	cached: func(actor string, object any) bool {
		_, cluster := object.(*clusterv1.Cluster)
		return cluster && actor == "scalableresource"
	},
}}

// lacksWatch drops all events of a kind for one controller.
func lacksWatch(controller, kind string) func(string, *change) bool {
	return func(name string, c *change) bool { return name == controller && c.kind == kind }
}

// lacksUpdates drops all events of a kind for one controller, except for the initial list.
func lacksUpdates(controller, kind string) func(string, *change) bool {
	return func(name string, c *change) bool { return name == controller && c.kind == kind && c.before != nil }
}

// misses reports whether a mutant, if any, lets a controller miss an event.
func (m *mutant) misses(controller string, c *change) bool {
	return m != nil && m.dropped != nil && m.dropped(controller, c)
}

// withoutPrecondition removes the tests from some JSON Patches of Machines.
func withoutPrecondition(of func(change jsonpatch.Operation) bool) func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
	return func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		if patch.Type() != types.JSONPatchType {
			return c.Patch(ctx, object, patch, options...)
		}
		data, err := patch.Data(object)
		must(err)
		operations := jsonpatch.Patch{}
		must(json.Unmarshal(data, &operations))
		if slices.ContainsFunc(operations, func(o jsonpatch.Operation) bool { return o.Kind() != "test" && of(o) }) {
			operations = slices.DeleteFunc(operations, func(o jsonpatch.Operation) bool { return o.Kind() == "test" })
			data, err = json.Marshal(operations)
			must(err)
		}
		return c.Patch(ctx, object, client.RawPatch(patch.Type(), data), options...)
	}
}

func links(o jsonpatch.Operation) bool {
	return o.Kind() != "remove" && changes(o, v1alpha1.NodeClaimUIDLabel)
}

func unlinks(o jsonpatch.Operation) bool {
	return o.Kind() == "remove" && changes(o, v1alpha1.NodeClaimUIDLabel)
}

func marks(o jsonpatch.Operation) bool { return changes(o, v1alpha1.MarkedForDeletionAtAnnotation) }

// changes reports whether an operation changes a label or an annotation, alone or with others that
// are the first.
func changes(o jsonpatch.Operation, key string) bool {
	path, err := o.Path()
	must(err)
	if strings.HasSuffix(path, "/"+strings.ReplaceAll(key, "/", "~1")) {
		return true
	}
	value, _ := o.ValueInterface()
	entries, _ := value.(map[string]any)
	_, found := entries[key]
	return found
}

// mutated returns the client of a process with the bug of a mutant, if any.
func (p *process) mutated(c client.WithWatch) client.WithWatch {
	if p.simulation.mutant == nil {
		return c
	}
	funcs := p.simulation.mutant.client
	funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		given := client.ListOptions{}
		given.ApplyOptions(options)
		if hidden := p.simulation.mutant.hidden; hidden != nil && hidden(p.simulation.server.actor, kindOf(list), given) {
			return meta.SetList(list, nil)
		}
		return c.List(ctx, list, options...)
	}
	return interceptor.NewClient(c, funcs)
}

// changeRead applies a mutant to an object that was read from the API server.
func (w *simulation) changeRead(object client.Object) {
	if w.mutant != nil && w.mutant.read != nil {
		w.mutant.read(object)
	}
}

// answersFromCache reports whether a mutant answers a read from the API server from the
// cache.
func (w *simulation) answersFromCache(object any) bool {
	return w.mutant != nil && w.mutant.cached != nil && w.mutant.cached(w.server.actor, object)
}
