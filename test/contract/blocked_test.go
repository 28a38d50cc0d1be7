// SPDX-License-Identifier: Apache-2.0

//go:build contract

package contract

import (
	"context"
	"os"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/controlplane/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// version is the version of control planes and Machines.
const version = "v1.33.0"

func failureStaysBehind(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "refused", 1, never)
	names := d.expectMachines(1)
	d.refuseMachines()
	d.scale(2)
	g.Eventually(func(g Gomega) {
		set := d.set(g)
		g.Expect(set.Status.Deprecated).NotTo(BeNil(), "status.deprecated")
		created, found := lo.Find(set.Status.Deprecated.V1Beta1.Conditions, func(c clusterv1.Condition) bool { //nolint:staticcheck // The fact is about it.
			return c.Type == clusterv1.MachinesCreatedV1Beta1Condition
		})
		g.Expect(found).To(BeTrue(), "condition MachinesCreated")
		g.Expect(created.Status).To(Equal(corev1.ConditionFalse), "condition MachinesCreated")
		g.Expect(created.Message).To(ContainSubstring("no Machine is welcome"))
		g.Expect(created.Message).To(Or(ContainSubstring("denied the request"), ContainSubstring(" is invalid: "), ContainSubstring(" is forbidden: ")))
		g.Expect(set.Status.ObservedGeneration).To(BeNumerically("<", set.Generation), "the observed generation of the MachineSet")
	}).Should(Succeed())
	g.Expect(d.all(g)).To(Equal(names), "Machines")
}

// refuseMachines makes the API server reject further Machines of the MachineDeployment.
func (d *deployment) refuseMachines() {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: d.name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineDeploymentNameLabel: d.name}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{clusterv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machines"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no Machine is welcome"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: d.name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	d.g.Expect(d.Create(d.ctx, policy)).To(Succeed())
	d.g.Expect(d.Create(d.ctx, binding)).To(Succeed())
	// The API server learns of it a moment later.
	probe := &d.machines(d.g)[0]
	d.g.Eventually(func() error {
		another := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: d.name + "-", Labels: probe.Labels}, Spec: *probe.Spec.DeepCopy()}
		return d.Create(d.ctx, another, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("no Machine is welcome")))
}

func blockedByTemplate(ctx context.Context, g Gomega, w *world) {
	d := w.newDeployment(ctx, g, "templateless", 1, never)
	names := d.expectMachines(1)
	g.Expect(w.Delete(ctx, &infrav1.SimulatedMachineTemplate{ObjectMeta: d.meta()})).To(Succeed())
	d.scale(2)
	d.expectBlocked()
	g.Expect(d.all(g)).To(Equal(names), "Machines")
}

// expectBlocked waits until the MachineSet reports why it creates no Machines.
func (d *deployment) expectBlocked() {
	d.g.Eventually(func(g Gomega) {
		set := d.set(g)
		found := meta.FindStatusCondition(set.Status.Conditions, clusterv1.MachineSetScalingUpCondition)
		g.Expect(found).NotTo(BeNil(), "condition ScalingUp")
		g.Expect(found.Message).To(ContainSubstring(" is blocked because:\n* "), "condition ScalingUp")
	}).Should(Succeed())
}

func blockedByPreflight(ctx context.Context, g Gomega, w *world) {
	in := w.newCluster(ctx, g, "upgraded", version)
	d := w.newDeployment(ctx, g, "preflight", 1, never, in, withVersion(version))
	names := d.expectMachines(1)
	w.setControlPlane(ctx, g, "upgraded", "v1.33.1", version)
	d.scale(2)
	d.expectBlocked()
	g.Expect(d.all(g)).To(Equal(names), "Machines")
	d.scale(0)
	d.expectMachines(0)
	d.scale(1)
	w.setControlPlane(ctx, g, "upgraded", "v1.33.1", "v1.33.1")
	d.expectMachines(1)
}

func blockedByVersion(ctx context.Context, g Gomega, w *world) {
	in := w.newCluster(ctx, g, "skewed", version)
	for name, other := range map[string]string{"newer": "v1.34.0", "older": "v1.29.0"} {
		d := w.newDeployment(ctx, g, name, 1, never, in, withVersion(other))
		d.g.Eventually(func(g Gomega) { g.Expect(d.sets(g)).To(HaveLen(1), "MachineSets") }).Should(Succeed())
		d.expectBlocked()
		g.Expect(d.all(g)).To(BeEmpty(), "Machines")
	}
	w.newDeployment(ctx, g, "oldest", 1, never, in, withVersion("v1.30.0")).expectMachines(1)
}

func skippedByAnnotation(ctx context.Context, g Gomega, w *world) {
	in := w.newCluster(ctx, g, "skipped", version)
	d := w.newDeployment(ctx, g, "skipping", 1, never, in, withVersion("v1.34.0"), func(d *clusterv1.MachineDeployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, clusterv1.MachineSetSkipPreflightChecksAnnotation, string(clusterv1.MachineSetPreflightCheckAll))
	})
	d.expectMachines(1)
}

func skippedByTemplate(ctx context.Context, g Gomega, w *world) {
	in := w.newCluster(ctx, g, "skippedbytemplate", version)
	template := &bootstrapv1.SimulatedConfigTemplate{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "skipping",
		Annotations: map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: string(clusterv1.MachineSetPreflightCheckAll)},
	}}
	template.Spec.Template.Spec.DataSecretName = stack.BootstrapSecretName
	g.Expect(w.Create(ctx, template)).To(Succeed())
	d := w.newDeployment(ctx, g, "skippingbytemplate", 1, never, in, withVersion("v1.34.0"), func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: "SimulatedConfigTemplate", Name: template.Name,
		}}
	})
	message := ""
	g.Eventually(func(g Gomega) {
		set := d.set(g)
		if found := meta.FindStatusCondition(set.Status.Conditions, clusterv1.MachineSetScalingUpCondition); found != nil {
			message = found.Message
		}
		g.Expect(len(d.all(g)) == 1 || strings.Contains(message, "is blocked")).To(BeTrue(), "a Machine, or a MachineSet that is blocked")
	}).Should(Succeed())
	g.Expect(d.all(g)).To(HaveLen(1), "Machines of a MachineSet that says: %s", message)
}

func withVersion(version string) func(*clusterv1.MachineDeployment) {
	return func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = version }
}

// newCluster creates another Cluster with the same workload cluster. It returns what puts a MachineDeployment into it.
func (w *world) newCluster(ctx context.Context, g Gomega, name, version string) func(*clusterv1.MachineDeployment) {
	kubeconfig, err := os.ReadFile(w.stack.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	labels := map[string]string{clusterv1.ClusterNameLabel: name}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	first := &infrav1.SimulatedCluster{}
	g.Expect(w.Get(ctx, objectKey(stack.ClusterName), first)).To(Succeed())
	for _, object := range []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig", Labels: labels},
			Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig},
		},
		&infrav1.SimulatedCluster{ObjectMeta: meta, Spec: first.Spec},
		&controlplanev1.SimulatedControlPlane{ObjectMeta: meta, Spec: controlplanev1.SimulatedControlPlaneSpec{
			ControlPlaneEndpoint: first.Spec.ControlPlaneEndpoint, Version: version,
		}},
		&clusterv1.Cluster{ObjectMeta: meta, Spec: clusterv1.ClusterSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "SimulatedCluster", Name: name},
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "SimulatedControlPlane", Name: name},
		}},
	} {
		g.Expect(w.Create(ctx, object)).To(Succeed())
	}
	g.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{}
		g.Expect(w.Get(ctx, objectKey(name), cluster)).To(Succeed())
		g.Expect(lo.FromPtr(cluster.Status.Initialization.ControlPlaneInitialized)).To(BeTrue(), "the control plane is initialized")
	}).Should(Succeed())
	return func(d *clusterv1.MachineDeployment) { d.Spec.ClusterName = name }
}

// setControlPlane sets the version that a control plane should have, and the one that it has.
func (w *world) setControlPlane(ctx context.Context, g Gomega, name, should, has string) {
	controlPlane := &controlplanev1.SimulatedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	change(ctx, g, w, controlPlane, func(c *controlplanev1.SimulatedControlPlane) {
		c.Spec.Version, c.Spec.RunningVersion = should, has
	})
	g.Eventually(func(g Gomega) {
		g.Expect(w.Get(ctx, objectKey(name), controlPlane)).To(Succeed())
		g.Expect(controlPlane.Status.Version).To(Equal(has))
	}).Should(Succeed())
}
