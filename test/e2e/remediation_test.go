// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/harness/workload"
)

// Karpenter decides to restart an unhealthy Node, or to replace it if the remediation template no longer exists. It decides so
// after 10 minutes, for which the integration tests have their own clock, so this test writes the decision to restart the
// Node itself. Then the machine restarts, and the Node, its Machine and its Pod stay.
func TestRemediation(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{OperatorArgs: []string{"--feature-gates=NodeRepair=true", "--log-level=debug"}})
	g := NewWithT(t)
	create(ctx, g, s, kinds.MachineDeployment, "general.yaml")
	reboot := &unstructured.Unstructured{}
	reboot.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1alpha1")
	reboot.SetKind("SimulatedRemediationTemplate")
	reboot.SetNamespace(stack.ClusterNamespace)
	reboot.SetName("reboot")
	g.Expect(s.Management.Create(ctx, reboot)).To(Succeed())
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	g.Expect(s.Workload.Patch(ctx, template, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"remediation":{"templateRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"SimulatedRemediationTemplate","name":"reboot"}}}}`)))).To(Succeed())
	ready := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		g.Eventually(ctx, func(g Gomega) {
			g.Expect(s.Workload.Get(ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
			g.Expect(template.StatusConditions().Get(v1alpha1.ConditionRemediationReady)).To(And(HaveField("Status", status), HaveField("Reason", reason)))
		}).WithTimeout(time.Minute).WithPolling(poll).Should(Succeed())
	}
	ready(metav1.ConditionTrue, v1alpha1.ConditionRemediationReady)

	const app = "steady"
	g.Expect(s.Workload.Create(ctx, workload.Deployment(app, nil, map[string]string{karpv1.NodePoolLabelKey: "general"}))).To(Succeed())
	g.Expect(workload.Scale(ctx, s.Workload, app, 1)).To(Succeed())
	node := nodeRunning(ctx, g, s, app)
	fails := func(action string) {
		t.Helper()
		deadlock := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
			`{"status":{"conditions":[{"type":"KernelDeadlock","status":"True","reason":"DockerHung","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339)))
		g.Expect(s.Workload.Status().Patch(ctx, node.DeepCopy(), deadlock)).To(Succeed())
		g.Eventually(ctx, func() (string, error) {
			log, err := os.ReadFile(filepath.Join(s.LogDir(), stack.Operator+".log"))
			return string(log), err
		}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(MatchRegexp(`"matched repair policy".*%q.*"condition":"KernelDeadlock".*"action":%q`, node.Name, action))
	}
	fails("RebootNode")

	claim := claimOf(ctx, g, s, node)
	claim.Annotations[karpv1.RebootTerminationGracePeriodAnnotationKey] = "0s"
	g.Expect(s.Workload.Update(ctx, claim)).To(Succeed())
	before := claim.DeepCopy()
	claim.StatusConditions().SetTrueWithReason(karpv1.ConditionTypeRebooting, karpv1.RebootReasonRequested, "rebooting for KernelDeadlock")
	g.Expect(s.Workload.Status().Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())
	g.Eventually(ctx, func(g Gomega) {
		g.Expect(s.Workload.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.StatusConditions().Get(karpv1.ConditionTypeRebooting)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", karpv1.RebootReasonSucceeded)))
		g.Expect(claim.StatusConditions().Get(karpv1.ConditionTypeInitialized)).To(HaveField("Status", metav1.ConditionTrue))
		g.Expect(claim.Annotations).NotTo(HaveKey(v1alpha1.RemediationAnnotation))
		restarted := &corev1.Node{}
		g.Expect(s.Workload.Get(ctx, client.ObjectKeyFromObject(node), restarted)).To(Succeed())
		g.Expect(restarted.UID).To(Equal(node.UID))
		g.Expect(restarted.Status.NodeInfo.BootID).NotTo(Equal(node.Status.NodeInfo.BootID))
		g.Expect(restarted.Status.Conditions).NotTo(ContainElement(HaveField("Type", BeEquivalentTo("KernelDeadlock"))))
		requests := &unstructured.UnstructuredList{}
		requests.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1alpha1")
		requests.SetKind("SimulatedRemediationList")
		g.Expect(s.Management.List(ctx, requests)).To(Succeed())
		g.Expect(requests.Items).To(BeEmpty())
		machines := &clusterv1.MachineList{}
		g.Expect(s.Management.List(ctx, machines, client.MatchingLabels{v1alpha1.TemplateLabel: "general"})).To(Succeed())
		g.Expect(machines.Items).To(HaveLen(1))
	}).WithTimeout(2 * time.Minute).WithPolling(poll).Should(Succeed())
	g.Expect(nodeRunning(ctx, g, s, app).UID).To(Equal(node.UID))

	g.Expect(s.Management.Delete(ctx, reboot)).To(Succeed())
	ready(metav1.ConditionFalse, v1alpha1.ReasonReferenceNotFound)
	fails("ReplaceNode")
}
