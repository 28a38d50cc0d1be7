// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// The operator does not block the deletion of its Cluster: from the deletion on it creates nothing in it, raises no
// replicas and marks no offering as unavailable, and the Cluster is deleted with all its Machines while Pods wait and
// Machines boot.
func TestClusterDeletion(t *testing.T) {
	t.Parallel()
	ctx, s := newStack(t, stack.Options{})
	g := NewWithT(t)
	w := newObserver(ctx, t, s)
	for _, kind := range kinds.All {
		createAs(ctx, g, s, kind, "ending.yaml", "ending", "ending-"+strings.ToLower(string(kind)))
	}
	g.Eventually(ctx, func(g Gomega) {
		left, err := whatIsLeft(ctx, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left.Nodes).To(BeNumerically(">", 4), "Nodes that have joined")
		g.Expect(left.Claims).To(BeNumerically(">", left.Nodes+4), "NodeClaims, some of which wait for their Nodes")
	}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())

	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: stack.ClusterName}}
	g.Expect(s.Management.Delete(ctx, cluster)).To(Succeed())
	g.Eventually(ctx, func() bool {
		return apierrors.IsNotFound(s.Management.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
	}).WithTimeout(3*time.Minute).WithPolling(poll).Should(BeTrue(), "the Cluster is deleted")
	g.Eventually(ctx, func() (census.Census, error) {
		found, err := whatIsLeft(ctx, s)
		found.Pods, found.Running = 0, 0 // They wait.
		// Cluster API deletes no Nodes of a Cluster that is being deleted, and Karpenter only those that have registered.
		registered := &corev1.NodeList{}
		err = errors.Join(err, s.Workload.List(ctx, registered, client.MatchingLabels{karpv1.NodeRegisteredLabelKey: "true"}))
		found.Nodes = len(registered.Items)
		return found, err
	}).WithTimeout(2*time.Minute).WithPolling(poll).Should(Equal(census.Census{}), "what is left")

	g.Eventually(ctx, func() ([]kinds.Infrastructure, error) { return kinds.Infrastructures(ctx, s.Management) }).
		WithTimeout(time.Minute).WithPolling(poll).Should(BeEmpty(), "generated templates and machine pools")

	g.Expect(createdSince(g, s, audit.Deleter("clusters", stack.ClusterName, auditEntries(g, s)))).To(BeEmpty(), "what the operator created in the Cluster")
	g.Expect(w.raisedWhileEnding()).To(BeEmpty(), "raised replicas")
	g.Expect(w.everMarked()).To(BeEmpty(), "unavailable offerings")
	g.Expect(w.reasonsOfClusterReady()).To(ContainElements(v1alpha1.ReasonClusterDeleting, v1alpha1.ReasonClusterDeleted))
}

// auditEntries returns the requests to the API servers of both clusters so far.
func auditEntries(g Gomega, s *stack.Stack) []audit.Entry {
	var all []audit.Entry
	for _, name := range []string{"audit.log", stack.ManagementPrefix + "audit.log"} {
		entries, _, err := audit.Log{Path: filepath.Join(s.LogDir(), name)}.Since(0)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).NotTo(BeEmpty(), name)
		all = append(all, entries...)
	}
	return all
}

// createdSince returns the requests after another one with which the operator created scalable resources, or objects
// that they refer to.
func createdSince(g *WithT, s *stack.Stack, since *audit.Entry) []string {
	g.Expect(since).NotTo(BeNil())
	var found []string
	for _, entry := range audit.WritesBy("karpenter-capi", auditEntries(g, s)) {
		created := entry.Verb == "create" && entry.Succeeded() && !strings.Contains(entry.RequestURI, "dryRun=") &&
			(strings.HasPrefix(entry.ObjectRef.APIGroup, "infrastructure.") || slices.Contains([]string{"machinedeployments", "machinepools"}, entry.ObjectRef.Resource))
		if created && entry.StageTimestamp.After(since.StageTimestamp) {
			found = append(found, entry.String())
		}
	}
	return found
}
