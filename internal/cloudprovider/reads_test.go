// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"testing"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// counting counts reads of the base template, and reads that copy it or a KarpenterMachineTemplate.
type counting struct {
	client.Client
	bases, copies int
}

// Get implements client.Reader.
func (c *counting) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	given := (&client.GetOptions{}).ApplyOptions(options)
	_, template := into.(*v1alpha1.KarpenterMachineTemplate)
	base := key.Name == "workers"
	if (template || base) && !lo.FromPtr(given.UnsafeDisableDeepCopy) {
		c.copies++
	}
	if base {
		c.bases++
	}
	return c.Client.Get(ctx, key, into, options...)
}

// What Karpenter calls for each claim copies neither the template nor its base, and all offerings in use share what is generated
// from.
func TestReadsForManyClaims(t *testing.T) {
	w := newDriftWorld(t)
	counted := &counting{Client: w.Client}
	both := fixture.Cluster{Client: counted}
	w.provider.clusters.Workload, w.provider.clusters.Management = both, both
	other := w.claim.DeepCopy()
	other.Labels[corev1.LabelInstanceTypeStable] = lo.Ternary(w.claim.Labels[corev1.LabelInstanceTypeStable] == "small", "large", "small")
	if reason, err := w.provider.IsDrifted(t.Context(), w.claim); err != nil || reason != "" {
		t.Fatalf("got %q and %v", reason, err)
	}
	once := counted.bases
	if reason, err := w.provider.IsDrifted(t.Context(), other); err != nil || reason != "" {
		t.Fatalf("got %q and %v", reason, err)
	}
	if once == 0 || counted.bases > once {
		t.Errorf("the first offering takes %d reads of its base, and a second one %d more", once, counted.bases-once)
	}
	pool := &karpv1.NodePool{}
	pool.Spec.Template.Spec.NodeClassRef = nodeClassRef
	if _, err := w.provider.GetInstanceTypes(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := w.provider.Create(t.Context(), waiting()); err != nil {
		t.Fatal(err)
	}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
	if _, _, err := w.provider.whyNotSpare(t.Context(), w.claim, machine); err != nil {
		t.Fatal(err)
	}
	if counted.copies > 0 {
		t.Errorf("the template or its base is copied %d times", counted.copies)
	}
}
