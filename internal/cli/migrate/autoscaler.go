// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// unneeded is for how long a Node is not needed before cluster-autoscaler removes it, by default.
const unneeded = "10m"

// ClusterAutoscaler plans the migration from cluster-autoscaler. MachineDeployments with the same taints share a template and
// a NodePool, whose names begin with a name.
func ClusterAutoscaler(found *Found, name string) (*Plan, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("--name: %w", err)
	}
	sized := lo.Filter(found.Deployments, func(d Deployment, _ int) bool { return isSized(d.Annotations) })
	if len(sized)+len(found.MachinePools) == 0 {
		return nil, fmt.Errorf("no MachineDeployment of Cluster %s/%s, apart from those of the operator, has both annotations of cluster-autoscaler, %s and %s",
			found.Cluster.Namespace, found.Cluster.Name, clusterv1.AutoscalerMinSizeAnnotation, clusterv1.AutoscalerMaxSizeAnnotation)
	}
	usable, notes := examine(found, sized)
	plan := &Plan{Notes: notes}
	for _, pool := range found.MachinePools {
		plan.Notes = append(plan.Notes, Note{"MachinePool " + pool, []string{"It is left out, because only MachineDeployments can be adopted. It stays with cluster-autoscaler."}})
	}
	if len(usable) == 0 {
		return plan, nil
	}
	byTemplate := map[string][]string{}
	taken := map[string]string{}
	for _, a := range usable {
		taints := a.taints()
		group := name
		if len(taints) > 0 {
			group += "-" + suffix(taints)
		}
		signature := fmt.Sprint(taints)
		for other, used := taken[group]; used && other != signature; other, used = taken[group] {
			group += "-x"
		}
		if _, used := taken[group]; !used {
			taken[group] = signature
			pool := nodePool(group, group)
			pool.Spec.Template.Spec.Taints = taints
			pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{}
			// cluster-autoscaler replaces no Node because of its age.
			pool.Spec.Template.Spec.ExpireAfter = karpv1.NillableDuration{}
			pool.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized
			pool.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration(unneeded)
			plan.Objects = append(plan.Objects, template(group, a.Deployment), pool)
		}
		byTemplate[group] = append(byTemplate[group], a.Name)
	}
	plan.Steps = []Step{
		{"Take the MachineDeployments from cluster-autoscaler: scale it to zero, or restrict its --node-group-auto-discovery to others.", nil},
		allow(found, byTemplate),
		{},
		{"See that the templates are Ready, and what they offer:", lo.Map(sorted(byTemplate), func(name string, _ int) string { return "kubectl karpenter-capi offerings " + name })},
	}
	plan.Back = append(release(found, byTemplate, sorted(byTemplate)), Step{"Let cluster-autoscaler discover the MachineDeployments again. Their sizes have not changed.", nil})
	return plan, nil
}

// suffix returns what the names of objects for taints end with: the name in the first key.
func suffix(taints []corev1.Taint) string {
	key := taints[0].Key[strings.LastIndex(taints[0].Key, "/")+1:]
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(key)), "-")
}
