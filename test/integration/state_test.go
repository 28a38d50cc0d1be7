// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
)

// stateNodesOf returns the nodes in core's view that belong to a claim.
func (e *environment) stateNodesOf(claim *karpv1.NodeClaim) []*state.StateNode {
	return e.stateNodes(func(n *state.StateNode) bool { return n.NodeClaim != nil && n.NodeClaim.Name == claim.Name })
}

// stateNodes returns the nodes in core's view that match.
func (e *environment) stateNodes(match func(*state.StateNode) bool) []*state.StateNode {
	var found []*state.StateNode
	for node := range e.state.Nodes() {
		if match(node) {
			found = append(found, node.ShallowCopy())
		}
	}
	return found
}

// usedCPU returns how much CPU a NodePool has, as core counts it for its limits.
func (e *environment) usedCPU(f *fixture) int64 {
	resources := e.state.NodePoolResourcesFor(f.name)
	return resources.Cpu().Value()
}

// stateWatch reads core's view all the time.
type stateWatch struct {
	mu       sync.Mutex
	maxNodes int
	maxCPU   int64
}

// watchState records, until the spec ends, how many nodes a claim has in core's view, and the usage
// of its NodePool.
func (f *fixture) watchState(claim *karpv1.NodeClaim) *stateWatch {
	w := &stateWatch{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	DeferCleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				nodes, cpu := len(env.stateNodesOf(claim)), env.usedCPU(f)
				w.mu.Lock()
				w.maxNodes, w.maxCPU = max(w.maxNodes, nodes), max(w.maxCPU, cpu)
				w.mu.Unlock()
			}
		}
	}()
	return w
}

// most returns the highest values that were seen.
func (w *stateWatch) most() (nodes int, cpu int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.maxNodes, w.maxCPU
}

// claimStep is the state of a claim after an event.
type claimStep struct {
	providerID string
	registered bool
}

// claimWatch records the steps of claims, each once.
type claimWatch struct {
	mu    sync.Mutex
	steps map[string][]claimStep
}

// watchClaims records the steps of all claims until the spec ends.
func (e *environment) watchClaims(ctx context.Context) *claimWatch {
	GinkgoHelper()
	w := &claimWatch{steps: map[string][]claimStep{}}
	informer, err := e.watches.GetInformer(ctx, &karpv1.NodeClaim{})
	Expect(err).NotTo(HaveOccurred())
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    w.add,
		UpdateFunc: func(_, object any) { w.add(object) },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return informer.RemoveEventHandler(registration) })
	return w
}

func (w *claimWatch) add(object any) {
	claim, ok := object.(*karpv1.NodeClaim)
	if !ok {
		return
	}
	step := claimStep{
		providerID: claim.Status.ProviderID,
		registered: claim.DeepCopy().StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue(),
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	steps := w.steps[claim.Name]
	if len(steps) == 0 || steps[len(steps)-1] != step {
		w.steps[claim.Name] = append(steps, step)
	}
}

// of returns the steps of a claim.
func (w *claimWatch) of(claim *karpv1.NodeClaim) []claimStep {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]claimStep{}, w.steps[claim.Name]...)
}

// createCalls returns how often core has called CloudProvider.Create.
func createCalls() uint64 {
	GinkgoHelper()
	return samples("karpenter_cloudprovider_duration_seconds", "method", "Create")
}

// reconciles returns how often a controller of the operator has finished a reconcile.
func reconciles(controller string) uint64 {
	GinkgoHelper()
	return samples("controller_runtime_reconcile_time_seconds", "controller", controller)
}

// schedulings returns how often Karpenter's provisioner has scheduled pods.
func schedulings() uint64 {
	GinkgoHelper()
	return samples("karpenter_scheduler_scheduling_duration_seconds", "controller", "provisioner")
}

// samples returns how many samples a histogram of this process has with the value of a label.
func samples(histogram, label, value string) uint64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	var count uint64
	for _, family := range families {
		if family.GetName() != histogram {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, pair := range metric.GetLabel() {
				if pair.GetName() == label && pair.GetValue() == value {
					count += metric.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	return count
}
