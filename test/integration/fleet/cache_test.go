// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// patience is how long a cache may take to follow a write.
const patience = 30 * time.Second

// The cache has the templates of the served Cluster and those that no Cluster owns, and handlers see their
// changes. It has none of another Cluster.
func TestCache(t *testing.T) {
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	for name, cluster := range map[string]string{"own": served.Name, "base": "", "other": "another"} {
		template := newTemplate(name, cluster)
		g.Expect(objects.Create(ctx, template)).To(Succeed())
		t.Cleanup(func() { g.Expect(objects.Delete(context.Background(), template)).To(Succeed()) })
	}
	_, op := newOperator(ctx, t)
	management := op.Clusters.Management
	ended := make(chan error, 1)
	go func() { ended <- management.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		g.Expect(<-ended).To(Succeed())
	})

	g.Expect(management.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	for name, want := range map[string]bool{"own": true, "base": true, "other": false} {
		err := management.GetClient().Get(ctx, client.ObjectKey{Namespace: served.Namespace, Name: name}, anyTemplate())
		if found := err == nil; found != want || !found && !apierrors.IsNotFound(err) {
			t.Errorf("reading template %s: %v", name, err)
		}
	}
	g.Expect(listed(ctx, g, management.GetClient())).To(Equal([]string{"base", "own"}))

	seen := make(chan string, 100)
	informer, err := management.GetCache().GetInformer(ctx, anyTemplate())
	g.Expect(err).NotTo(HaveOccurred())
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, after any) { seen <- after.(client.Object).GetName() },
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(registration.HasSyncedChecker().Done()).WithTimeout(patience).Should(BeClosed())
	g.Expect(informer.HasSynced() && registration.HasSynced()).To(BeTrue())
	for _, name := range []string{"other", "base", "own"} {
		edit(ctx, g, name, map[string]any{"annotations": map[string]any{"edited": "1"}})
	}
	var names []string
	for range 2 {
		var name string
		g.Eventually(seen).WithTimeout(patience).Should(Receive(&name))
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"base", "own"}, names); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	// A base that gets the label of another Cluster is no longer a base, and a template that loses it is one.
	edit(ctx, g, "base", map[string]any{"labels": map[string]any{clusterv1.ClusterNameLabel: "another"}})
	edit(ctx, g, "other", map[string]any{"labels": map[string]any{clusterv1.ClusterNameLabel: nil}})
	g.Eventually(func() []string { return listed(ctx, g, management.GetClient()) }).WithTimeout(patience).Should(Equal([]string{"other", "own"}))

	g.Expect(informer.RemoveEventHandler(registration)).To(Succeed())
	g.Expect(management.GetCache().RemoveInformer(ctx, anyTemplate())).To(Succeed())
	g.Eventually(informer.IsStopped).WithTimeout(patience).Should(BeTrue())
}

// newTemplate returns a template of a Cluster; of none if that is empty.
func newTemplate(name, cluster string) *infrav1.SimulatedMachineTemplate {
	template := &infrav1.SimulatedMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: name}}
	template.Spec.Template.Spec.InstanceType = "small"
	if cluster != "" {
		template.Labels = map[string]string{clusterv1.ClusterNameLabel: cluster}
	}
	return template
}

// anyTemplate returns an empty template, as the operator reads those of all providers.
func anyTemplate() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(infrav1.GroupVersion.WithKind("SimulatedMachineTemplate"))
	return object
}

// listed returns the names of the templates that a reader lists.
func listed(ctx context.Context, g Gomega, reader client.Reader) []string {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(infrav1.GroupVersion.WithKind("SimulatedMachineTemplateList"))
	g.Expect(reader.List(ctx, list, client.InNamespace(served.Namespace))).To(Succeed())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	slices.Sort(names)
	return names
}

// edit merges metadata into a template.
func edit(ctx context.Context, g Gomega, name string, metadata map[string]any) {
	object := anyTemplate()
	object.SetNamespace(served.Namespace)
	object.SetName(name)
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects.Patch(ctx, object, client.RawPatch("application/merge-patch+json", data))).To(Succeed())
}
