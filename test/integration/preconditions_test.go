// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

var _ = Describe("A write to a Machine", func() {
	It("conflicts in the API server only with what it depends on, and an invalid one is no conflict", func(ctx SpecContext) {
		machine := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.cluster.Namespace, GenerateName: "of-no-cluster-"},
			Spec: clusterv1.MachineSpec{
				ClusterName:       "none",
				Bootstrap:         clusterv1.Bootstrap{DataSecretName: new("none")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "SimulatedMachine", Name: "none"},
			},
		}
		Expect(env.client.Create(ctx, machine)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(env.client.Delete(ctx, machine))).To(Succeed())
		})
		read := machine.DeepCopy()

		By("writing another annotation")
		env.change(ctx, machine, func() { machine.Annotations = map[string]string{"example.com/theirs": "x"} })
		// The Machine had no annotations when it was read, so the patch would replace theirs.
		Expect(lifecycle.Mark(ctx, env.client, read, time.Now(), true)).To(MatchError(apierrors.IsConflict, "a conflict"))

		By("writing another annotation again")
		Expect(env.get(ctx, machine)).To(Succeed())
		read = machine.DeepCopy()
		env.change(ctx, machine, func() { machine.Annotations["example.com/theirs"] = "y" })
		Expect(lifecycle.Mark(ctx, env.client, read, time.Now(), true)).To(Succeed())
		Expect(env.get(ctx, machine)).To(Succeed())
		Expect(machine.Annotations).To(HaveKeyWithValue("example.com/theirs", "y"))
		Expect(lifecycle.IsMarked(machine)).To(BeTrue())

		By("marking the Machine as it was before")
		Expect(lifecycle.Mark(ctx, env.client, read, time.Now(), true)).To(MatchError(apierrors.IsConflict, "a conflict"))

		By("writing an invalid label")
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}
		_, err := lifecycle.Link(ctx, env.client, machine, claim, map[string]string{"no label!": ""})
		Expect(err).To(MatchError(apierrors.IsInvalid, "invalid"))
	})
})
