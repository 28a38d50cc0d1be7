// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// The Pods have the same security settings, probes, resources and placement as those of config/manager.
func TestPodsAreThoseOfKustomize(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Root(), "config", "manager", "manager.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	manager := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(text, manager); err != nil {
		t.Fatal(err)
	}
	view := func(deployment *appsv1.Deployment) map[string]any {
		pod := deployment.Spec.Template.Spec
		container := pod.Containers[0]
		return map[string]any{
			"security of the Pod":       pod.SecurityContext,
			"security of the container": container.SecurityContext,
			"liveness":                  container.LivenessProbe,
			"readiness":                 container.ReadinessProbe,
			"resources":                 container.Resources,
			"termination":               container.TerminationMessagePolicy,
			"ports":                     container.Ports,
			"token":                     pod.AutomountServiceAccountToken,
			"service links":             pod.EnableServiceLinks,
			"priority":                  pod.PriorityClassName,
			"nodes":                     pod.Affinity.NodeAffinity,
			"tolerations":               pod.Tolerations,
		}
	}
	got := the[appsv1.Deployment](t, render(t, Operator, nil), "Deployment")
	if diff := cmp.Diff(view(manager), view(got)); diff != "" {
		t.Errorf("(-kustomize +chart):\n%s", diff)
	}
}

// Selectors match the operator's Pods, whatever labels they have, and no Pods of another release.
func TestSelectors(t *testing.T) {
	values := Matrix()["one cluster, all"]
	values["podLabels"] = Values{"app.kubernetes.io/name": "another", "team": "platform"}
	rendered := render(t, Operator, values)
	deployment := the[appsv1.Deployment](t, rendered, "Deployment")
	own := map[string]string{"app.kubernetes.io/name": "karpenter-capi", "app.kubernetes.io/instance": release}
	if diff := cmp.Diff(map[string]string(labels.Merge(own, map[string]string{"team": "platform"})), deployment.Spec.Template.Labels); diff != "" {
		t.Errorf("labels of the Pods (-want +got):\n%s", diff)
	}
	service := the[corev1.Service](t, rendered, "Service")
	monitor := &struct {
		Spec struct{ Selector metav1.LabelSelector }
	}{}
	fill(t, rendered, "ServiceMonitor", monitor)
	for name, got := range map[string]map[string]string{
		"Deployment":          deployment.Spec.Selector.MatchLabels,
		"Service":             service.Spec.Selector,
		"PodDisruptionBudget": the[policyv1.PodDisruptionBudget](t, rendered, "PodDisruptionBudget").Spec.Selector.MatchLabels,
		"NetworkPolicy":       the[networkingv1.NetworkPolicy](t, rendered, "NetworkPolicy").Spec.PodSelector.MatchLabels,
		"ServiceMonitor":      monitor.Spec.Selector.MatchLabels,
	} {
		if diff := cmp.Diff(own, got); diff != "" {
			t.Errorf("the selector of the %s (-want +got):\n%s", name, diff)
		}
	}
	if !labels.SelectorFromSet(monitor.Spec.Selector.MatchLabels).Matches(labels.Set(service.Labels)) {
		t.Error("the ServiceMonitor does not select the Service")
	}
}

// Terms without a labelSelector get one for the operator's Pods; those that have one keep it.
func TestSpread(t *testing.T) {
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "karpenter-capi", "app.kubernetes.io/instance": release}}
	mine := &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/mine": "yes"}}
	byDefault := the[appsv1.Deployment](t, render(t, Operator, nil), "Deployment").Spec.Template.Spec
	if diff := cmp.Diff([]corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: own},
	}, byDefault.TopologySpreadConstraints); diff != "" {
		t.Errorf("the default spread (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: own}},
	}}, byDefault.Affinity.PodAntiAffinity); diff != "" {
		t.Errorf("the default anti-affinity (-want +got):\n%s", diff)
	}
	set := the[appsv1.Deployment](t, render(t, Operator, Matrix()["one cluster, all"]), "Deployment").Spec.Template.Spec
	if diff := cmp.Diff([]corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own},
		{MaxSkew: 2, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: mine},
	}, set.TopologySpreadConstraints); diff != "" {
		t.Errorf("a spread that is set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]*metav1.LabelSelector{own, mine}, []*metav1.LabelSelector{
		set.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector,
		set.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector,
	}); diff != "" {
		t.Errorf("an affinity that is set (-want +got):\n%s", diff)
	}
}

func TestImage(t *testing.T) {
	digest := "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	for name, tc := range map[string]struct {
		image Values
		want  string
	}{
		"default": {Values{}, "ghcr.io/karpenter-capi/karpenter-capi:dev"},
		"tag":     {Values{"repository": "example.com/mine", "tag": "v1"}, "example.com/mine:v1"},
		"digest":  {Values{"digest": digest}, "ghcr.io/karpenter-capi/karpenter-capi:dev@" + digest},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := the[appsv1.Deployment](t, render(t, Operator, Values{"controller": Values{"image": tc.image}}), "Deployment")
			if got := deployment.Spec.Template.Spec.Containers[0].Image; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// The operator can access the API servers of both clusters.
func TestNetworkPolicy(t *testing.T) {
	for server, want := range map[string][]int{
		"https://management.example.com":      {443, 6443},
		"https://management.example.com:8443": {443, 6443, 8443},
		"https://10.0.0.1:6443/path":          {443, 6443},
		"https://[fd00::1]":                   {443, 6443},
	} {
		t.Run(server, func(t *testing.T) {
			policy := the[networkingv1.NetworkPolicy](t, render(t, Operator, Values{
				"networkPolicy": Values{"enabled": true}, "placement": "WorkloadCluster",
				"managementCluster": Values{"server": server, "token": "t"},
			}), "NetworkPolicy")
			var got []int
			for _, port := range policy.Spec.Egress[1].Ports {
				got = append(got, port.Port.IntValue())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// On OpenShift the restricted SecurityContextConstraints choose user and groups, from a range of the namespace, and admit no
// Pod that asks for others. docs/installation/helm.md has these values.
func TestClusterChoosesUser(t *testing.T) {
	pod := the[appsv1.Deployment](t, render(t, Operator, Values{
		"podSecurityContext": Values{"fsGroup": nil},
		"controller":         Values{"securityContext": Values{"runAsUser": nil, "runAsGroup": nil}},
	}), "Deployment").Spec.Template.Spec
	runtimeDefault := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	if diff := cmp.Diff(&corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: runtimeDefault}, pod.SecurityContext); diff != "" {
		t.Errorf("the Pod (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&corev1.SecurityContext{
		RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}, pod.Containers[0].SecurityContext); diff != "" {
		t.Errorf("the container (-want +got):\n%s", diff)
	}
}

// What users set for the Pods and their container is what these have.
func TestPodsAreAsSet(t *testing.T) {
	pod := the[appsv1.Deployment](t, render(t, Operator, Matrix()["one cluster, all"]), "Deployment").Spec.Template.Spec
	container := pod.Containers[0]
	if got := container.SecurityContext; *got.RunAsUser != 1000 || *got.RunAsGroup != 1001 || got.AppArmorProfile.Type != corev1.AppArmorProfileTypeRuntimeDefault || got.SELinuxOptions.Level != "s0:c1" {
		t.Errorf("the security context is %v", got)
	}
	probe := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")}}
	}
	// Values of the user are merged with those of the chart.
	if diff := cmp.Diff(&corev1.Probe{
		ProbeHandler: probe("/healthz"), InitialDelaySeconds: 60, TimeoutSeconds: 30, FailureThreshold: 5, TerminationGracePeriodSeconds: new(int64(10)),
	}, container.LivenessProbe); diff != "" {
		t.Errorf("liveness (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&corev1.Probe{
		ProbeHandler: probe("/readyz"), InitialDelaySeconds: 5, TimeoutSeconds: 30, PeriodSeconds: 5, SuccessThreshold: 2,
	}, container.ReadinessProbe); diff != "" {
		t.Errorf("readiness (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"management.example.com"}}}, pod.HostAliases); diff != "" {
		t.Errorf("host aliases (-want +got):\n%s", diff)
	}
	if !*pod.EnableServiceLinks {
		t.Error("the Pods get no addresses of Services")
	}
}

// Only the operator's Pods get a token of its ServiceAccount, and no Pod gets that of an identity.
func TestTokenIsNotMounted(t *testing.T) {
	for name, values := range Matrix() {
		t.Run(name, func(t *testing.T) {
			rendered := render(t, Operator, values)
			for _, account := range decode[corev1.ServiceAccount](t, rendered, "ServiceAccount") {
				if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
					t.Errorf("all Pods with ServiceAccount %s get its token", account.Name)
				}
			}
			for _, deployment := range decode[appsv1.Deployment](t, rendered, "Deployment") {
				if mounts := deployment.Spec.Template.Spec.AutomountServiceAccountToken; mounts == nil || !*mounts {
					t.Error("the operator's Pods get no token")
				}
			}
		})
	}
}

// Objects of the user are installed as they are, and can contain templates.
func TestExtraObjects(t *testing.T) {
	var got []string
	for _, name := range render(t, Operator, Matrix()["one cluster, all"]).names() {
		if strings.HasPrefix(name, "ConfigMap ") && !strings.Contains(name, "-dashboard-") {
			got = append(got, name)
		}
	}
	if diff := cmp.Diff([]string{"ConfigMap karpenter/mine", "ConfigMap karpenter/text"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// fill decodes the only object of a kind without a type here into the fields that are checked.
func fill(t *testing.T, from objects, kind string, into any) {
	t.Helper()
	text, err := yaml.Marshal(the[unstructured.Unstructured](t, from, kind).Object)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
