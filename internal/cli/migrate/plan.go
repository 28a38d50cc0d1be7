// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// SelectLabel is the label by which the templates of a plan find their MachineDeployments. Its value is the name of the template.
const SelectLabel = "karpenter"

// Plan is what a migration consists of.
type Plan struct {
	// Notes describe what becomes of each object.
	Notes []Note
	// Steps come in this order. The one without a text is to apply the objects.
	Steps []Step
	// Back are the steps back.
	Back []Step
	// Objects are the objects of the workload cluster.
	Objects []client.Object
}

// Note is what a user has to know about an object.
type Note struct {
	Object string
	Lines  []string
}

// Step is one thing to do, with the commands for it.
type Step struct {
	Text     string
	Commands []string
}

// adopted is a MachineDeployment that can be adopted.
type adopted struct {
	Deployment
	found catalog.Type
}

// examine returns the MachineDeployments that can be adopted, and a note for each of all.
func examine(found *Found, deployments []Deployment) ([]adopted, []Note) {
	var usable []adopted
	var notes []Note
	for _, deployment := range deployments {
		note := Note{Object: "MachineDeployment " + deployment.Name}
		described, err := describe(deployment)
		if err != nil {
			note.Lines = append(note.Lines, "It is left out. To adopt it, correct this: "+err.Error()+".")
		} else {
			usable = append(usable, adopted{deployment, described})
			note.Lines = append(note.Lines, sizes(deployment)...)
			if _, priced := deployment.Annotations[v1alpha1.DiscoveredPriceAnnotation]; !priced {
				note.Lines = append(note.Lines, fmt.Sprintf("It has no price, so one of %.3f for an hour follows from its capacity. Set the annotation %s to compare it with others.", described.Offerings[0].Price, v1alpha1.DiscoveredPriceAnnotation))
			}
			if contested := clients.ReplicasSetBy(deployment.MachineDeployment, found.Cluster); contested != nil {
				note.Lines = append(note.Lines, "Before it can be adopted: "+contested.Error()+".")
			}
			if _, topology := deployment.Labels[clusterv1.ClusterTopologyOwnedLabel]; topology {
				note.Lines = append(note.Lines, "It is of the Cluster's topology: set its annotations and labels in spec.topology.workers.machineDeployments[].metadata.")
			}
		}
		notes = append(notes, note)
	}
	return usable, notes
}

// describe returns what a template would discover in a MachineDeployment that the other provider does not scale any more.
func describe(deployment Deployment) (catalog.Type, error) {
	free := deployment.DeepCopy()
	delete(free.Labels, v1alpha1.OtherMemberLabel)
	return catalog.OfMachineDeployment(free, deployment.Infrastructure, &v1alpha1.KarpenterMachineTemplate{})
}

// sizes returns what becomes of the sizes of a MachineDeployment.
func sizes(deployment Deployment) []string {
	replicas := lo.FromPtr(deployment.Spec.Replicas)
	var lines []string
	if largest, given := deployment.Annotations[clusterv1.AutoscalerMaxSizeAnnotation]; given {
		lines = append(lines, fmt.Sprintf("Its maximum of %s stays the limit of all its Machines, with the %d that it has now.", largest, replicas))
	} else {
		lines = append(lines, fmt.Sprintf("It has no maximum. Set the annotation %s to limit it.", clusterv1.AutoscalerMaxSizeAnnotation))
	}
	text, given := deployment.Annotations[clusterv1.AutoscalerMinSizeAnnotation]
	least, err := strconv.Atoi(text)
	switch {
	case !given || err == nil && least == 0:
	case err != nil:
		lines = append(lines, fmt.Sprintf("Its annotation %s is not a number: %q. It has no effect.", clusterv1.AutoscalerMinSizeAnnotation, text))
	default:
		lines = append(lines, fmt.Sprintf("Its minimum of %d cannot be carried over, because a NodePool has none. The operator keeps the %d Machines that it has now, until you delete them.", least, replicas))
	}
	return lines
}

// taints returns the taints with which the Nodes of a MachineDeployment join, in order.
func (a adopted) taints() []corev1.Taint {
	taints := lo.Map(a.found.Offerings[0].Taints, func(t catalog.Taint, _ int) corev1.Taint { return t.Taint })
	taints = lo.UniqBy(taints, func(t corev1.Taint) string { return t.ToString() })
	slices.SortFunc(taints, func(x, y corev1.Taint) int { return strings.Compare(x.ToString(), y.ToString()) })
	return taints
}

// template returns a template that discovers the MachineDeployments with its name in SelectLabel.
func template(name string, first Deployment) *v1alpha1.KarpenterMachineTemplate {
	t := &v1alpha1.KarpenterMachineTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	t.Spec.Template.Spec.Bootstrap = first.Spec.Template.Spec.Bootstrap
	t.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{SelectLabel: name}},
	}}
	return t
}

// checkName returns an error for the name of a template that cannot be the value of SelectLabel.
func checkName(name string) error {
	if name == "" || len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsValidLabelValue(name)) > 0 {
		return fmt.Errorf("%q: expected a name of at most 63 lower case letters, digits, '-' and '.', because MachineDeployments get it as a label", name)
	}
	return nil
}

// nodePool returns a NodePool of a template without anything else.
func nodePool(name, template string) *karpv1.NodePool {
	pool := &karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	setClass(pool, template)
	return pool
}

func setClass(pool *karpv1.NodePool, template string) {
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: template}
}

// allow is the step that lets a template use its MachineDeployments.
func allow(found *Found, byTemplate map[string][]string) Step {
	step := Step{Text: "In the management cluster, let the templates use the MachineDeployments:"}
	for _, name := range slices.Sorted(maps.Keys(byTemplate)) {
		names := strings.Join(byTemplate[name], " ")
		step.Commands = append(step.Commands,
			fmt.Sprintf("kubectl annotate machinedeployment --namespace %s %s %s=true", found.Cluster.Namespace, names, v1alpha1.AdoptableAnnotation),
			fmt.Sprintf("kubectl label machinedeployment --namespace %s %s %s=%s", found.Cluster.Namespace, names, SelectLabel, name))
	}
	return step
}

// release are the steps that give the MachineDeployments back.
func release(found *Found, byTemplate map[string][]string, pools []string) []Step {
	var commands []string
	for _, name := range slices.Sorted(maps.Keys(byTemplate)) {
		commands = append(commands, fmt.Sprintf("kubectl annotate machinedeployment --namespace %s %s %s-", found.Cluster.Namespace, strings.Join(byTemplate[name], " "), v1alpha1.AdoptableAnnotation))
	}
	return []Step{
		{"In the management cluster, allow no more NodeClaims:", commands},
		{"Delete the NodePools. Karpenter drains their Nodes, and the operator deletes their Machines:", []string{"kubectl delete nodepool " + strings.Join(pools, " ")}},
		{"Wait until no MachineDeployment has the annotation " + v1alpha1.AdoptedAnnotation + ". Each then has the Machines that it had before.", nil},
	}
}
