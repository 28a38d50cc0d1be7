// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// member is one of the Clusters of a fleet, with its operator.
type member struct {
	*stack.Stack
	// cluster is the name of the Cluster, and user is who its operator is in the management cluster.
	cluster, user string
	// objects are what exists for the Cluster while its Pods run, as resource/name.
	objects sets.Set[string]
}

// Two operators serve two Clusters in one namespace of one management cluster. Their templates have the same names and
// bases. Both launch and remove Nodes at once. The audit log of the management cluster shows that neither operator writes
// an object of the other Cluster or reads one by its name, that no list or watch has such objects, and that neither reads
// a Secret.
func TestFleet(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, first := newStack(t, stack.Options{HasNeighbour: true})
	_, second := newStack(t, stack.Options{NeighbourOf: first})
	g := NewWithT(t)
	account := "system:serviceaccount:" + stack.ClusterNamespace + ":" + stack.Operator
	fleet := []*member{
		{Stack: first, cluster: stack.ClusterName, user: account},
		{Stack: second, cluster: stack.NeighbourName, user: account + "-" + stack.NeighbourName},
	}
	for _, m := range fleet {
		m.objects = sets.New[string]()
	}
	for _, kind := range inTurn(t, kinds.All) {
		scaleFleet(ctx, g, fleet, kind)
	}

	log := audit.Log{Path: filepath.Join(first.LogDir(), stack.ManagementPrefix+"audit.log")}
	entries, err := log.Requests()
	g.Expect(err).NotTo(HaveOccurred())
	for n, m := range fleet {
		other := fleet[1-n]
		g.Expect(m.objects.Intersection(other.objects)).To(BeEmpty(), "names that both Clusters have")
		writes, reads := named(entries, m.user)
		t.Logf("the operator of Cluster %s has written %d objects and read %d by name in the management cluster; Cluster %s had %d objects: written 0, read 0",
			m.cluster, writes.Len(), reads.Len(), other.cluster, other.objects.Len())
		g.Expect(writes.Intersection(m.objects)).NotTo(BeEmpty(), "what it has written of its own Cluster")
		g.Expect(writes.Intersection(other.objects)).To(BeEmpty(), "what it has written of the other Cluster")
		g.Expect(reads.Intersection(other.objects)).To(BeEmpty(), "what it has read of the other Cluster")
		g.Expect(unselective(entries, m)).To(BeEmpty(), "requests that can return objects of the other Cluster")
		otherWrites, _ := named(entries, other.user)
		g.Expect(writes.Intersection(otherWrites)).To(BeEmpty(), "what both have written")
	}
}

// scaleFleet lets all members launch Nodes at once, records what exists for them, and removes the Nodes at once,
// with the templates.
func scaleFleet(ctx context.Context, g *WithT, fleet []*member, kind kinds.Kind) {
	for _, m := range fleet {
		for _, file := range []string{"general.yaml", "general-pods.yaml"} {
			manifests, err := testdata.ReadFile("testdata/" + file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.Create(ctx, m.own(kind.Manifests(manifests), generalOf(kind)))).To(Succeed(), file)
		}
	}
	for _, m := range fleet {
		g.Eventually(ctx, func() (int, error) { return runningPods(ctx, m.Stack, generalOf(kind)) }).
			WithTimeout(3*time.Minute).WithPolling(poll).Should(Equal(generalPods), "Pods that run in Cluster %s", m.cluster)
		m.record(ctx, g)
	}
	for _, m := range fleet {
		pods := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: generalOf(kind)}}
		g.Expect(m.Workload.Delete(ctx, pods, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	}
	for _, m := range fleet {
		m.removed(ctx, g, kind)
	}
}

// removed waits until a member has no NodeClaims, and deletes its NodePool, its template and its catalog.
func (m *member) removed(ctx context.Context, g *WithT, kind kinds.Kind) {
	g.Eventually(ctx, func() ([]karpv1.NodeClaim, error) {
		claims := &karpv1.NodeClaimList{}
		err := m.Workload.List(ctx, claims)
		return claims.Items, err
	}).WithTimeout(3*time.Minute).WithPolling(poll).Should(BeEmpty(), "NodeClaims in Cluster %s", m.cluster)
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: generalOf(kind)}}
	g.Expect(m.Workload.Delete(ctx, &karpv1.NodePool{ObjectMeta: template.ObjectMeta})).To(Succeed())
	g.Expect(m.Workload.Delete(ctx, template)).To(Succeed())
	g.Eventually(ctx, func() bool {
		return apierrors.IsNotFound(m.Workload.Get(ctx, client.ObjectKeyFromObject(template), template))
	}).WithTimeout(2*time.Minute).WithPolling(poll).Should(BeTrue(), "the template no longer exists in Cluster %s", m.cluster)
	g.Expect(m.Workload.Delete(ctx, &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: generalOf(kind)}})).To(Succeed())
}

// generalOf returns the name of the catalog, the template, the NodePool and the Deployment for a kind, which is the same in all Clusters.
func generalOf(kind kinds.Kind) string { return "general-" + strings.ToLower(string(kind)) }

// own returns the manifests of general.yaml for a member. The bases exist once, for all.
func (m *member) own(manifests []byte, name string) []byte {
	manifests = bytes.ReplaceAll(manifests, []byte("general"), []byte(name))
	if m.cluster == stack.ClusterName {
		return manifests
	}
	manifests = bytes.ReplaceAll(manifests, []byte("dataSecretName: bootstrap"), []byte("dataSecretName: bootstrap-"+stack.NeighbourName))
	var own [][]byte
	for _, document := range bytes.Split(manifests, []byte("\n---\n")) {
		if !bytes.Contains(document, []byte("\napiVersion: infrastructure")) && !bytes.HasPrefix(document, []byte("apiVersion: infrastructure")) {
			own = append(own, document)
		}
	}
	return bytes.Join(own, []byte("\n---\n"))
}

// record adds what exists for the Cluster now.
func (m *member) record(ctx context.Context, g *WithT) {
	m.objects.Insert("clusters/" + m.cluster)
	for resource, kind := range map[string]schema.GroupVersionKind{
		"secrets":                   corev1.SchemeGroupVersion.WithKind("Secret"),
		"machinedeployments":        clusterv1.GroupVersion.WithKind("MachineDeployment"),
		"machinepools":              clusterv1.GroupVersion.WithKind("MachinePool"),
		"machinesets":               clusterv1.GroupVersion.WithKind("MachineSet"),
		"machines":                  clusterv1.GroupVersion.WithKind("Machine"),
		"simulatedmachines":         infrav1.GroupVersion.WithKind("SimulatedMachine"),
		"simulatedmachinetemplates": infrav1.GroupVersion.WithKind("SimulatedMachineTemplate"),
		"simulatedmachinepools":     infrav1.GroupVersion.WithKind("SimulatedMachinePool"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		g.Expect(m.Management.List(ctx, list, client.InNamespace(stack.ClusterNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: m.cluster})).To(Succeed())
		for i := range list.Items {
			m.objects.Insert(resource + "/" + list.Items[i].Name)
		}
	}
}

// named returns the objects that a user has written, and those that the user has read by name.
func named(entries []audit.Entry, user string) (writes, reads sets.Set[string]) {
	writes, reads = sets.New[string](), sets.New[string]()
	for i := range entries {
		e := &entries[i]
		switch object := e.ObjectRef.Resource + "/" + e.ObjectRef.Name; {
		case !e.For(user) || e.ObjectRef.Name == "":
		case e.Write():
			writes.Insert(object)
		default:
			reads.Insert(object)
		}
	}
	return writes, reads
}

// unselective returns the lists and watches of a member's operator that do not leave out the objects of other Clusters,
// and everything that it asks for about Secrets.
func unselective(entries []audit.Entry, m *member) []string {
	var found []string
	for i := range entries {
		e := &entries[i]
		if !e.For(m.user) || e.ObjectRef.Resource != "secrets" && (e.Verb != "list" && e.Verb != "watch" || !ofClusterAPI(e)) {
			continue
		}
		query := url.Values{}
		if uri, err := url.Parse(e.RequestURI); err == nil {
			query = uri.Query()
		}
		selector, field := query.Get("labelSelector"), query.Get("fieldSelector")
		own := strings.Contains(selector, clusterv1.ClusterNameLabel+"="+m.cluster)
		unlabelled := strings.Contains(selector, "!"+clusterv1.ClusterNameLabel)
		if e.ObjectRef.Resource == "secrets" || !own && !unlabelled && field != "metadata.name="+m.cluster {
			found = append(found, e.String())
		}
	}
	return found
}

// ofClusterAPI reports whether a request is about objects of Cluster API or of a provider.
func ofClusterAPI(e *audit.Entry) bool {
	group := e.ObjectRef.APIGroup
	return group == clusterv1.GroupVersion.Group || strings.HasSuffix(group, "."+clusterv1.GroupVersion.Group) && group != "karpenter."+clusterv1.GroupVersion.Group
}
