// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// shortDelay is the longest delay of work that caughtUp waits for. Cluster API reconciles an object at most once a
// second, and the operator begins the reconciles of a scalable resource up to a second apart.
const shortDelay = time.Second

// kinds are lists of some kinds, by the name of the kind.
type kinds map[string]func() client.ObjectList

var (
	workloadKinds = kinds{
		"NodeClaim": func() client.ObjectList { return &karpv1.NodeClaimList{} },
		"Node":      func() client.ObjectList { return &corev1.NodeList{} },
		"template":  func() client.ObjectList { return &v1alpha1.KarpenterMachineTemplateList{} },
	}
	clusterAPIKinds = kinds{
		"Machine":           func() client.ObjectList { return &clusterv1.MachineList{} },
		"MachineSet":        func() client.ObjectList { return &clusterv1.MachineSetList{} },
		"MachineDeployment": func() client.ObjectList { return &clusterv1.MachineDeploymentList{} },
		"MachinePool":       func() client.ObjectList { return &clusterv1.MachinePoolList{} },
	}
	instanceKinds = kinds{
		"SimulatedMachine":     func() client.ObjectList { return &infrav1.SimulatedMachineList{} },
		"SimulatedMachinePool": func() client.ObjectList { return &infrav1.SimulatedMachinePoolList{} },
	}
	// Cluster API reads objects of providers as unstructured objects.
	unstructuredKinds = kinds{
		"SimulatedMachine":     func() client.ObjectList { return unstructuredList("SimulatedMachineList") },
		"SimulatedMachinePool": func() client.ObjectList { return unstructuredList("SimulatedMachinePoolList") },
	}
)

func unstructuredList(kind string) client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(infrav1.GroupVersion.WithKind(kind))
	return list
}

// cached is a cache of controllers, or of the watches of specs, with kinds that they have there.
type cached struct {
	of     string
	reader client.Reader
	kinds  kinds
}

func (e *environment) caches(ctx context.Context, g Gomega) []cached {
	nodes, err := e.clusterCache.GetReader(ctx, e.cluster)
	g.Expect(err).NotTo(HaveOccurred())
	return []cached{
		{"Karpenter and the operator", e.operator.GetClient(), workloadKinds},
		{"the operator", e.operator.Clusters.Management.GetClient(), clusterAPIKinds},
		{"Cluster API", e.clusterAPI, clusterAPIKinds},
		{"Cluster API", e.clusterAPI, unstructuredKinds},
		{"Cluster API", nodes, kinds{"Node": workloadKinds["Node"]}},
		{"the infrastructure provider", e.provider, instanceKinds},
		{"the infrastructure provider", e.provider, kinds{"Machine": clusterAPIKinds["Machine"]}},
		{"the watches", e.watches, kinds{"Machine": clusterAPIKinds["Machine"], "SimulatedMachine": instanceKinds["SimulatedMachine"]}},
	}
}

// caughtUp waits until all controllers have seen all objects whose names begin with a prefix, and have nothing more
// to do for them: what has not happened by then does not happen, unless something else triggers it, or a timer that
// is longer than shortDelay. It begins again if the objects have changed, so that a chain of reactions has ended. Unlike
// Consistently, it proves that on a machine of any speed.
func (e *environment) caughtUp(ctx context.Context, prefix string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		before := e.live(ctx, g, prefix)
		for _, cache := range e.caches(ctx, g) {
			g.Expect(read(ctx, g, cache.reader, cache.kinds, prefix)).To(Equal(subset(before, cache.kinds)), "the cache of %s", cache.of)
		}
		until := time.Now().Add(shortDelay)
		g.Eventually(ctx, func() []string { return e.queues.open(prefix, until) }).WithPolling(10*time.Millisecond).WithTimeout(10*time.Second).
			Should(BeEmpty(), "work for %s", prefix)
		// Handlers add work just after a cache has an object. They have long done so when all these requests have ended.
		g.Expect(e.live(ctx, g, prefix)).To(Equal(before), "objects that change")
		g.Expect(e.queues.open(prefix, until)).To(BeEmpty(), "work for %s", prefix)
	}).WithPolling(20 * time.Millisecond).Should(Succeed())
}

// caughtUp waits until all controllers have seen the objects of the fixture, and do nothing more.
func (f *fixture) caughtUp(ctx context.Context) {
	GinkgoHelper()
	env.caughtUp(ctx, f.name)
}

// versions are the resourceVersions of objects, by kind and name.
type versions map[string]map[string]string

// live returns the versions that the API server has.
func (e *environment) live(ctx context.Context, g Gomega, prefix string) versions {
	all := versions{}
	for _, some := range []kinds{workloadKinds, clusterAPIKinds, instanceKinds} {
		for kind, found := range read(ctx, g, e.client, some, prefix) {
			all[kind] = found
		}
	}
	return all
}

// read returns the versions that a reader has.
func read(ctx context.Context, g Gomega, reader client.Reader, of kinds, prefix string) versions {
	all := versions{}
	for kind, newList := range of {
		all[kind] = map[string]string{}
		list := newList()
		g.Expect(reader.List(ctx, list)).To(Succeed())
		g.Expect(meta.EachListItem(list, func(item runtime.Object) error {
			if object := item.(client.Object); strings.HasPrefix(object.GetName(), prefix) {
				all[kind][object.GetName()] = object.GetResourceVersion()
			}
			return nil
		})).To(Succeed())
	}
	return all
}

// subset returns the versions of some kinds.
func subset(all versions, of kinds) versions {
	found := versions{}
	for kind := range of {
		found[kind] = all[kind]
	}
	return found
}
