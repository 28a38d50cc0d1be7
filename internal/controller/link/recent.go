// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

// recent has Machines as the API server returned them, until the cache has the same version or a
// later one. Without them, a claim whose link was written could seem to wait for a Machine. The
// zero value is ready to use.
//
// It has the Machines that this process has linked and, from the first reconcile on, all that were
// linked before. A process fills its caches before it becomes the leader, so they may lack the
// last writes of the previous leader. While it is the leader, no other process writes links. If a
// write of the previous leader arrives even later, a claim can get a second Machine, which is
// unlinked again.
type recent struct {
	// filling is locked while fill reads the Machines that were linked before.
	filling sync.Mutex
	filled  bool

	mu sync.Mutex
	// machines has the Machines by scalable resource and UID.
	machines map[string]map[types.UID]seen
}

// seen is a Machine as the API server returned it.
type seen struct {
	machine *clusterv1.Machine
	// doubtful reports whether the API server may have applied a later write. Then the Machine is
	// read again before it is used.
	doubtful bool
}

// add stores a version of a Machine.
func (r *recent) add(resource string, machine *clusterv1.Machine) {
	r.set(resource, machine.UID, seen{machine: machine})
}

// doubt stores that a write to a Machine failed, which the API server may have applied.
func (r *recent) doubt(resource string, machine *clusterv1.Machine) {
	r.set(resource, machine.UID, seen{machine: machine, doubtful: true})
}

// fill reads the linked Machines from the API server, once in the life of a process.
func (r *recent) fill(ctx context.Context, live client.Reader, served types.NamespacedName) error {
	r.filling.Lock()
	defer r.filling.Unlock()
	if r.filled {
		return nil
	}
	linked := &clusterv1.MachineList{}
	if err := live.List(ctx, linked, client.InNamespace(served.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: served.Name}, lifecycle.LinkedToAny()); err != nil {
		return fmt.Errorf("listing the linked Machines of Cluster %s: %w", served, err)
	}
	for i := range linked.Items {
		machine := &linked.Items[i]
		machine.ManagedFields = nil // as in the cache
		r.add(clients.ResourceOf(machine), machine)
	}
	r.filled = true
	return nil
}

func (r *recent) set(resource string, uid types.UID, as seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machines == nil {
		r.machines = map[string]map[types.UID]seen{}
	}
	if r.machines[resource] == nil {
		r.machines[resource] = map[types.UID]seen{}
	}
	r.machines[resource][uid] = as
}

func (r *recent) forget(resource string, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.machines[resource], uid)
	if len(r.machines[resource]) == 0 {
		delete(r.machines, resource)
	}
}

// get returns a Machine that is not doubtful; nil if none is known.
func (r *recent) get(resource string, uid types.UID) *clusterv1.Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.machines[resource][uid]; !known.doubtful {
		return known.machine
	}
	return nil
}

// of returns the Machines of a resource.
func (r *recent) of(resource string) []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []seen
	for _, s := range r.machines[resource] {
		all = append(all, s)
	}
	return all
}

// newest returns the Machines of a resource, each in the latest known version. It reads from the
// API server only Machines that are doubtful, and those that the cache lacks because they were
// deleted or because the cache is behind.
func (r *recent) newest(ctx context.Context, live client.Reader, resource string, cached []clusterv1.Machine) ([]clusterv1.Machine, error) {
	all := r.of(resource)
	if len(all) == 0 {
		return cached, nil
	}
	indexes := make(map[types.UID]int, len(cached))
	for i := range cached {
		indexes[cached[i].UID] = i
	}
	for _, known := range all {
		uid := known.machine.UID
		i, isCached := indexes[uid]
		if !isCached || known.doubtful {
			machine, err := ReadMachine(ctx, live, known.machine)
			if err != nil {
				return nil, err
			}
			if machine == nil || clients.ResourceOf(machine) != resource {
				r.forget(resource, uid)
				continue
			}
			known = seen{machine: machine}
			r.add(resource, machine)
		}
		switch {
		case !isCached:
			cached = append(cached, *known.machine)
		case IsLater(known.machine, &cached[i]):
			cached[i] = *known.machine
		default:
			r.forget(resource, uid)
		}
	}
	return cached, nil
}

// IsLater reports whether a is a later version than b of one object.
func IsLater(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}

// ReadMachine returns a Machine from the API server; nil if it no longer exists.
func ReadMachine(ctx context.Context, live client.Reader, machine *clusterv1.Machine) (*clusterv1.Machine, error) {
	read := &clusterv1.Machine{}
	if err := live.Get(ctx, client.ObjectKeyFromObject(machine), read); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("getting Machine %s: %w", client.ObjectKeyFromObject(machine), err)
	}
	if read.UID != machine.UID {
		return nil, nil
	}
	return read, nil
}
