// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

const kubeadmTemplates = "kubeadmconfigtemplates"

var _ = Describe("A template", func() {
	It("can name a Secret as soon as the Cluster's own base template does, and until then nothing is sent", func(ctx SpecContext) {
		acceptKubeadm(ctx)
		f := machineDeployments.newFixture("secretpatch")
		newKubeadmTemplate(ctx, f.name, map[string]any{"joinConfiguration": map[string]any{"nodeRegistration": map[string]any{"name": "x"}}})
		f.template.Spec.Template.Spec.Version = "v1.36.3"
		f.template.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: f.name,
		}}
		f.template.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetBootstrap, JSONPatches: []v1alpha1.JSONPatch{{
			Op: "add", Path: "/spec/template/spec/files", Value: &apiextensionsv1.JSON{Raw: []byte(`[{"path": "/x", "contentFrom": {"secret": {"name": "prod-kubeconfig", "key": "value"}}}]`)},
		}}}}
		mark := env.requests.mark()
		f.create(ctx)
		refused := func() {
			f.waitNotReady(ctx, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonSecretNotAllowed,
				"spec.template.spec.files[0].contentFrom.secret.name of KubeadmConfigTemplate secretpatch", "names Secret prod-kubeconfig", "add prod-kubeconfig to the operator's --allowed-secrets")
		}
		refused()
		Expect(env.requests.since(mark, func(r request) bool { return r.write() && strings.Contains(r.path, kubeadmTemplates) })).To(BeEmpty(), "dry runs included")

		By("having a MachineDeployment of the Cluster whose base template names it")
		newKubeadmTemplate(ctx, f.name+"-own", map[string]any{"files": []any{
			map[string]any{"path": "/x", "contentFrom": map[string]any{"secret": map[string]any{"name": "prod-kubeconfig", "key": "value"}}},
		}})
		own := f.ownMachineDeployment(f.name + "-own")
		Expect(env.client.Create(ctx, own)).To(Succeed())
		f.waitReady(ctx)

		By("no longer having it")
		env.delete(ctx, own)
		refused()
	})

	It("that is edited to name another Secret launches nothing, and its Nodes stay", func(ctx SpecContext) {
		f := machineDeployments.newFixture("secretedit").createReady(ctx)
		claim := f.launchOne(ctx)
		machine := env.waitMachine(ctx, claim)
		env.change(ctx, f.template, func() {
			f.template.Spec.Template.Spec.Bootstrap.DataSecretName = new("prod-kubeconfig")
		})
		f.waitNotReady(ctx, v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonSecretNotAllowed, "spec.template.spec.bootstrap.dataSecretName names Secret prod-kubeconfig")
		env.waitGone(ctx, f.launchOne(ctx))
		f.caughtUp(ctx)
		Expect(env.client.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		Expect(claim.DeletionTimestamp).To(BeNil())
		Expect(claim.StatusConditions().Get("Drifted").IsTrue()).To(BeFalse())
		Expect(env.client.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
		Expect(machine.DeletionTimestamp).To(BeNil())
		Expect(f.resources(ctx)).To(HaveLen(1))
	})

	It("can name the Secrets with the label that the operator allows", func(ctx SpecContext) {
		options, err := operator.ParseOptions("--cluster-name="+served.Name, "--cluster-namespace="+served.Namespace, "--allowed-secrets=label:example.com/for-templates=yes",
			"--bind-address=127.0.0.1", "--metrics-port=0", "--health-probe-port=0", "--disable-leader-election=true",
			"--log-output-paths="+env.logFile("labels"), "--log-error-output-paths="+env.logFile("labels"))
		Expect(err).NotTo(HaveOccurred())
		operatorCtx, stop := context.WithCancel(ctx)
		operatorCtx, op, err := operator.New(operatorCtx, env.config, env.config, options)
		Expect(err).NotTo(HaveOccurred())
		ended := make(chan error, 1)
		go func() { ended <- op.Start(operatorCtx) }()
		defer func() {
			stop()
			Eventually(ctx, ended).WithTimeout(time.Minute).Should(Receive(Succeed()))
		}()
		secret := func(name string, labels map[string]string) *corev1.Secret {
			object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: name, Labels: labels}}
			Expect(env.client.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, object))).To(Succeed()) })
			return object
		}
		labelled := secret("labelled", map[string]string{"example.com/for-templates": "yes"})
		secret("other-label", map[string]string{"example.com/for-templates": "no"})
		secret("no-label", nil)
		names := func(g Gomega) []string {
			allowed, err := generate.ReadAllowed(ctx, op.Clusters, &v1alpha1.KarpenterMachineTemplate{})
			g.Expect(err).NotTo(HaveOccurred())
			return sets.List(allowed.Own.Labelled)
		}
		Eventually(ctx, names).WithTimeout(time.Minute).Should(Equal([]string{"labelled"}))
		env.delete(ctx, labelled)
		Eventually(ctx, names).WithTimeout(time.Minute).Should(BeEmpty())
	})

	It("cannot make a worker look like a control plane", func(ctx SpecContext) {
		f := machineDeployments.newFixture("secretlabel")
		f.template.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{clusterv1.MachineControlPlaneLabel: ""}
		f.create(ctx)
		f.waitNotReady(ctx, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonFieldNotAllowed, "spec.template.metadata.labels may not contain cluster.x-k8s.io/control-plane")
		env.change(ctx, f.template, func() { f.template.Spec.Template.Metadata.Labels = nil })
		f.waitReady(ctx)
	})

	It("can generate no other kind than that of its base template", func(ctx SpecContext) {
		f := machinePools.newFixture("otherkind")
		patch := func(field, value string) {
			f.template.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{{
				Op: "add", Path: "/spec/template/" + field, Value: &apiextensionsv1.JSON{Raw: []byte(`"` + value + `"`)},
			}}}}
		}
		patch("kind", "SimulatedMachine")
		mark := env.requests.mark()
		f.create(ctx)
		f.waitNotReady(ctx, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonFieldNotAllowed, "may not set spec.template.kind")
		env.change(ctx, f.template, func() { patch("apiVersion", "cluster.x-k8s.io/v1beta2") })
		f.waitNotReady(ctx, v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonFieldNotAllowed, "may not set spec.template.apiVersion")
		Expect(env.requests.since(mark, func(r request) bool {
			return r.write() && strings.Contains(r.path, "/simulatedmachine") && strings.Contains(r.body, f.name)
		})).To(BeEmpty(), "dry runs included")
		env.change(ctx, f.template, func() { f.template.Spec.Patches = nil })
		f.waitReady(ctx)
	})
})

// acceptKubeadm gives the CustomResourceDefinition of KubeadmConfigTemplates Cluster API's contract label until
// the spec ends.
func acceptKubeadm(ctx context.Context) {
	GinkgoHelper()
	set := func(ctx context.Context, change func(*apiextensionsv1.CustomResourceDefinition)) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(env.crds.Get(ctx, client.ObjectKey{Name: kubeadmTemplates + ".bootstrap.cluster.x-k8s.io"}, crd)).To(Succeed())
		before := crd.DeepCopy()
		change(crd)
		Expect(env.crds.Patch(ctx, crd, client.MergeFrom(before))).To(Succeed())
	}
	var had bool
	set(ctx, func(crd *apiextensionsv1.CustomResourceDefinition) {
		_, had = crd.Labels["cluster.x-k8s.io/v1beta2"]
		metav1.SetMetaDataLabel(&crd.ObjectMeta, "cluster.x-k8s.io/v1beta2", "v1beta2")
	})
	DeferCleanup(func(ctx SpecContext) {
		if !had {
			set(ctx, func(crd *apiextensionsv1.CustomResourceDefinition) { delete(crd.Labels, "cluster.x-k8s.io/v1beta2") })
		}
	})
}

// newKubeadmTemplate creates a KubeadmConfigTemplate in the namespace of the served Cluster until the spec ends.
func newKubeadmTemplate(ctx context.Context, name string, spec map[string]any) {
	GinkgoHelper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
	object.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta2")
	object.SetKind("KubeadmConfigTemplate")
	object.SetNamespace(served.Namespace)
	object.SetName(name)
	Expect(env.client.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.client.Delete(ctx, object))).To(Succeed()) })
}

// ownMachineDeployment returns a MachineDeployment without Machines that a user of the management cluster has
// created, with a KubeadmConfigTemplate.
func (f *fixture) ownMachineDeployment(config string) *clusterv1.MachineDeployment {
	labels := map[string]string{clusterv1.ClusterNameLabel: served.Name}
	return &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: config, Labels: labels},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: served.Name, Replicas: new(int32(0)), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"own": config}},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"own": config, clusterv1.ClusterNameLabel: served.Name}},
				Spec: clusterv1.MachineSpec{
					ClusterName: served.Name, InfrastructureRef: *f.infrastructureRef(f.name),
					Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
						APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: config,
					}},
				},
			},
		},
	}
}
