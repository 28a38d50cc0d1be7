// SPDX-License-Identifier: Apache-2.0

// Package uninstall finds what the operator would leave behind if it were uninstalled now. It only reads,
// from the API servers of both clusters. The subcommand uninstall-check prints what it finds.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// Finding is objects of one kind that would be left behind.
type Finding struct {
	// Kind is the plural of what was found, for the user.
	Kind string
	// Names are the objects.
	Names []string
	// Do is what the user does about them.
	Do string
}

// Finder reads from both clusters of a served Cluster.
type Finder struct {
	// Workload and Management read from the API servers.
	Workload, Management client.Reader
	// Mapper is the mapper of the management cluster.
	Mapper meta.RESTMapper
	// Cluster is the served Cluster.
	Cluster types.NamespacedName
}

// Find returns what would be left behind, in the order in which it is removed. A kind whose
// CustomResourceDefinition does not exist has no objects.
func (f *Finder) Find(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	for _, find := range []struct {
		kind, do string
		names    func(context.Context) ([]string, error)
	}{
		{"NodePools", "Delete them, or let them use another NodeClass: Karpenter then drains their Nodes.", f.nodePools},
		{"NodeClaims", "Wait until Karpenter has drained their Nodes. Delete those that belong to no NodePool.", f.nodeClaims},
		{"KarpenterMachineTemplates", "Delete them: the operator then deletes what was generated from them. Their condition Deletable shows what that waits for.", f.templates},
		{"MachineDeployments and MachinePools", "Wait until the operator has deleted those that it generated, and has ended the adoption of the others.", f.resources},
		{"Machines with links or hooks", "Wait until they are deleted: the operator then removes its hooks.", f.machines},
		{"generated infrastructure and bootstrap objects", "Wait until the operator has deleted them.", f.copies},
	} {
		names, err := find.names(ctx)
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("looking for %s: %w", find.kind, err)
		}
		if len(names) > 0 {
			findings = append(findings, Finding{Kind: find.kind, Names: names, Do: find.do})
		}
	}
	return findings, nil
}

func (f *Finder) nodePools(ctx context.Context) ([]string, error) {
	pools := &karpv1.NodePoolList{}
	err := f.Workload.List(ctx, pools)
	return lo.FilterMap(pools.Items, func(pool karpv1.NodePool, _ int) (string, bool) {
		return pool.Name, clients.IsTemplate(pool.Spec.Template.Spec.NodeClassRef)
	}), err
}

func (f *Finder) nodeClaims(ctx context.Context) ([]string, error) {
	claims := &karpv1.NodeClaimList{}
	err := f.Workload.List(ctx, claims)
	return lo.FilterMap(claims.Items, func(claim karpv1.NodeClaim, _ int) (string, bool) {
		return claim.Name, clients.IsTemplate(claim.Spec.NodeClassRef)
	}), err
}

func (f *Finder) templates(ctx context.Context) ([]string, error) {
	templates := &v1alpha1.KarpenterMachineTemplateList{}
	err := f.Workload.List(ctx, templates)
	return lo.Map(templates.Items, func(template v1alpha1.KarpenterMachineTemplate, _ int) string { return template.Name }), err
}

// ofCluster selects the objects of the served Cluster. The management cluster has those of others.
func (f *Finder) ofCluster() []client.ListOption {
	return []client.ListOption{client.InNamespace(f.Cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: f.Cluster.Name}}
}

func (f *Finder) resources(ctx context.Context) ([]string, error) {
	deployments, pools := &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{}
	options := append(f.ofCluster(), client.HasLabels{v1alpha1.TemplateLabel})
	err := errors.Join(f.Management.List(ctx, deployments, options...), f.Management.List(ctx, pools, options...))
	var names []string
	for i := range deployments.Items {
		names = append(names, nameOf(&deployments.Items[i]))
	}
	for i := range pools.Items {
		names = append(names, nameOf(&pools.Items[i]))
	}
	return names, err
}

func nameOf(object client.Object) string { return scalable.New(object).String() }

func (f *Finder) machines(ctx context.Context) ([]string, error) {
	machines := &clusterv1.MachineList{}
	err := f.Management.List(ctx, machines, f.ofCluster()...)
	return lo.FilterMap(machines.Items, func(machine clusterv1.Machine, i int) (string, bool) {
		return client.ObjectKeyFromObject(&machine).String(), lifecycle.HasHooks(&machines.Items[i]) || lifecycle.ClaimUID(&machines.Items[i]) != ""
	}), err
}

func (f *Finder) copies(ctx context.Context) ([]string, error) {
	kinds, err := reference.Kinds(ctx, f.Management, f.Mapper)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, kind := range kinds {
		copies, err := scalable.Copies(ctx, f.Management, kind, f.Cluster)
		if err != nil {
			return nil, err
		}
		for i := range copies {
			names = append(names, fmt.Sprintf("%s %s", kind.Kind, client.ObjectKeyFromObject(&copies[i])))
		}
	}
	return names, nil
}

// maxNamed is the number of objects that are named for each kind.
const maxNamed = 10

// ErrNotSafe is the error if something would be left behind.
var ErrNotSafe = errors.New("it is not safe to uninstall the operator now")

// Print prints the findings and what to do. It returns ErrNotSafe if there are any.
func Print(out io.Writer, cluster types.NamespacedName, findings []Finding) error {
	if len(findings) == 0 {
		_, err := fmt.Fprintf(out, "Nothing of the operator for Cluster %s is left: it is safe to uninstall it.\n", cluster)
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "If you uninstall the operator for Cluster %s now, it leaves behind:\n", cluster)
	for _, finding := range findings {
		fmt.Fprintf(&text, "\n%d %s: %s\n  %s\n", len(finding.Names), finding.Kind, budget.Names(finding.Names, maxNamed), finding.Do)
	}
	if _, err := io.WriteString(out, text.String()+"\n"); err != nil {
		return err
	}
	return ErrNotSafe
}
