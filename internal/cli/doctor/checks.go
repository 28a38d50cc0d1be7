// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/why"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// operatorLeads finds that no operator renews the lease.
func operatorLeads(ctx context.Context, v *view.View) ([]Finding, error) {
	if v.Lease(ctx) == nil {
		return []Finding{warning("Lease/"+view.LeaseName, "Check that the operator is installed, and that you may list leases", "no operator has a lease in either cluster, or you may not list leases")}, nil
	}
	if stopped := v.Stopped(ctx); stopped != "" {
		return []Finding{problem("Lease/"+view.LeaseName, "Read the log of the operator, and the state of its Pods", "%s", stopped)}, nil
	}
	return nil, nil
}

// clusterIsReady finds a Cluster in which no Machines can be created.
func clusterIsReady(_ context.Context, v *view.View) ([]Finding, error) {
	name := "Cluster/" + v.Served().Name
	switch {
	case v.Cluster == nil:
		return []Finding{problem(name, why.Do(v1alpha1.ReasonClusterNotFound), "it does not exist in namespace %s", v.Served().Namespace)}, nil
	case !v.Cluster.DeletionTimestamp.IsZero():
		return []Finding{warning(name, why.Do(v1alpha1.ReasonClusterDeleting), "it is being deleted")}, nil
	case lo.FromPtr(v.Cluster.Spec.Paused):
		return []Finding{warning(name, why.Do(v1alpha1.ReasonClusterPaused), "it is paused, so nothing is launched")}, nil
	}
	return nil, nil
}

// nodePoolsAreReady finds NodePools that launch nothing.
func nodePoolsAreReady(_ context.Context, v *view.View) ([]Finding, error) {
	var found []Finding
	if len(v.NodePools) == 0 {
		found = append(found, warning("NodePool", "Create a NodePool whose nodeClassRef names a template", "no NodePool uses a %s", v1alpha1.Kind))
	}
	for i := range v.NodePools {
		pool := &v.NodePools[i]
		name := "NodePool/" + pool.Name
		if class := pool.Spec.Template.Spec.NodeClassRef.Name; v.Template(class) == nil {
			found = append(found, problem(name, "Create the template, or correct nodeClassRef", "%s %s does not exist", v1alpha1.Kind, class))
			continue
		}
		if state := view.OfNodePool(pool); state.Problem != "" {
			found = append(found, problem(name, "Correct what the message names", "%s", state.Problem))
		}
		if limit := view.NodePoolLimit(pool); limit != "" {
			found = append(found, warning(name, "Raise spec.limits if more Nodes are wanted", "%s", limit))
		}
	}
	return found, nil
}

// templatesAreHealthy finds conditions of templates that are not True.
func templatesAreHealthy(_ context.Context, v *view.View) ([]Finding, error) {
	var found []Finding
	for i := range v.Templates {
		template := &v.Templates[i]
		blocks := lo.FromPtr(view.Condition(template.Status.Conditions, v1alpha1.ConditionReady))
		for _, condition := range template.Status.Conditions {
			if condition.IsTrue() || condition.Type == v1alpha1.ConditionReady || condition.IsUnknown() {
				continue
			}
			finding := warning(v1alpha1.Kind+"/"+template.Name, why.Do(condition.Reason), "%s=%s: %s", condition.Type, condition.Reason, condition.Message)
			if !blocks.IsTrue() && strings.Contains(blocks.Message, condition.Type) {
				finding.Level = Problem
			}
			found = append(found, finding)
		}
	}
	return found, nil
}

// catalogsAreValid finds catalogs with instance types that cannot be used.
func catalogsAreValid(_ context.Context, v *view.View) ([]Finding, error) {
	return lo.FlatMap(v.Catalogs, func(catalog v1alpha1.InstanceTypeCatalog, _ int) []Finding {
		return lo.FilterMap(catalog.Status.Conditions, func(condition status.Condition, _ int) (Finding, bool) {
			return warning(v1alpha1.CatalogKind+"/"+catalog.Name, why.Do(condition.Reason), "%s=%s: %s", condition.Type, condition.Reason, condition.Message),
				!condition.IsTrue() && condition.Type != v1alpha1.ConditionReady
		})
	}), nil
}

// onlyOneAutoscaler finds objects whose replicas another controller sets, or would set.
func onlyOneAutoscaler(ctx context.Context, v *view.View) ([]Finding, error) {
	var found []Finding
	for _, resource := range v.Resources {
		if _, has := resource.GetAnnotations()[clusterv1.AutoscalerMinSizeAnnotation]; has {
			found = append(found, problem(resource.String(), "Remove the annotations of cluster-autoscaler: two autoscalers undo each other's work", "it has the annotation %s", clusterv1.AutoscalerMinSizeAnnotation))
		}
		changed, err := v.Changed(ctx, resource)
		if err != nil {
			return found, err
		}
		if changed != "" {
			found = append(found, problem(resource.String(), why.Do(v1alpha1.ReasonMachineDeploymentChanged), "%s", changed))
		}
	}
	return found, nil
}

// registrationTimeout is how long Karpenter waits for a Node before it gives up on a NodeClaim (karpenter:
// pkg/controllers/nodeclaim/lifecycle/liveness.go).
const registrationTimeout = 15 * time.Minute

// healthChecksWait finds MachineHealthChecks that delete a Machine of a NodeClaim before Karpenter gives up on it.
func healthChecksWait(ctx context.Context, v *view.View) ([]Finding, error) {
	checks, err := v.HealthChecks(ctx)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for i := range checks {
		check := &checks[i]
		selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
		if err != nil {
			return found, fmt.Errorf("MachineHealthCheck %s: %w", check.Name, err)
		}
		count := lo.CountBy(v.Machines, func(machine clusterv1.Machine) bool {
			return selector.Matches(labels.Set(machine.Labels)) && v.Resource(clients.ResourceOf(&machine)) != nil
		})
		if count == 0 {
			continue
		}
		if timeout := check.Spec.Checks.NodeStartupTimeoutSeconds; timeout == nil || *timeout > 0 && time.Duration(*timeout)*time.Second < registrationTimeout {
			limit := lo.Ternary(timeout == nil, "not set, and 10 minutes by default", fmt.Sprintf("%d", lo.FromPtr(timeout)))
			found = append(found, warning("MachineHealthCheck/"+check.Name, "Set checks.nodeStartupTimeoutSeconds to 900 or more, or exclude these Machines", "it selects %d Machines of NodeClaims, and its nodeStartupTimeoutSeconds is %s: it deletes Machines before Karpenter gives up on their NodeClaims", count, limit))
		}
	}
	return found, nil
}

// linksAgree finds Machines and NodeClaims that contradict each other.
func linksAgree(_ context.Context, v *view.View) ([]Finding, error) {
	var found []Finding
	owners := map[string]string{}
	for i := range v.Claims {
		claim := &v.Claims[i]
		name := "NodeClaim/" + claim.Name
		if id := claim.Status.ProviderID; id != "" {
			if other, shared := owners[id]; shared {
				found = append(found, problem(name, "Delete the NodeClaim whose Machine does not have the Node", "it has the provider ID %s of NodeClaim %s", id, other))
			}
			owners[id] = claim.Name
		}
		machine := v.MachineOf(claim)
		registered := nodeclaims.IsRegistered(claim)
		switch {
		case machine == nil && registered && claim.DeletionTimestamp == nil:
			found = append(found, problem(name, "Wait a minute. If it stays, delete the NodeClaim: Karpenter replaces its Node", "it has a Node, and no Machine"))
		case machine != nil && registered && machine.Spec.ProviderID != "" && machine.Spec.ProviderID != claim.Status.ProviderID:
			found = append(found, problem(name, why.Do(v1alpha1.ReasonProviderIDChanged), "its provider ID is %s, and that of its Machine %s is %s", claim.Status.ProviderID, machine.Name, machine.Spec.ProviderID))
		}
	}
	return found, nil
}

// operatorHasRoom finds that all Nodes are Karpenter's, so that the operator could not run without them.
func operatorHasRoom(ctx context.Context, v *view.View) ([]Finding, error) {
	lease := v.Lease(ctx)
	if lease == nil || len(v.Nodes) == 0 || !lease.InWorkload {
		return nil, nil
	}
	for i := range v.Nodes {
		node := &v.Nodes[i]
		if _, managed := node.Labels[karpv1.NodePoolLabelKey]; !managed && view.IsReady(node) && !node.Spec.Unschedulable {
			return nil, nil
		}
	}
	return []Finding{warning("Node", "Add a Node that Karpenter does not manage, such as in a MachineDeployment of your own, and let the operator run there", "Karpenter manages all Nodes that are Ready and not cordoned, so the operator has none if they are deleted")}, nil
}
