// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/signals"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// allowed returns what templates may refer to with such options.
func allowed(secrets, baseTemplates string) tenancy.Rules {
	return lo.Must(tenancy.Parse(secrets, baseTemplates, ""))
}

// unexported are the fields of Karpenter's options that contain the text of other fields.
var unexported = cmpopts.IgnoreUnexported(coreoptions.Options{}, coreoptions.FeatureGates{})

// Each setting reaches the operator as it is written in the values: the operator's own code reads it, from the rendered
// container.
func TestSettings(t *testing.T) {
	newHelm(t)
	setting := func(name string, value any) Values { return Values{"settings": Values{name: value}} }
	gate := func(name string, on bool) Values { return setting("featureGates", Values{name: on}) }
	for name, tc := range map[string]struct {
		values Values
		want   func(*operator.Options)
	}{
		"defaults":                         {},
		"clusterName":                      {setting("clusterName", "demo"), func(o *operator.Options) { o.ClusterName = "demo" }},
		"clusterNamespace":                 {setting("clusterNamespace", "default"), func(o *operator.Options) { o.ClusterNamespace = "default" }},
		"batchMaxDuration":                 {setting("batchMaxDuration", "1m30s"), func(o *operator.Options) { o.Core.BatchMaxDuration = 90 * time.Second }},
		"batchIdleDuration":                {setting("batchIdleDuration", "0.5s"), func(o *operator.Options) { o.Core.BatchIdleDuration = 500 * time.Millisecond }},
		"preferencePolicy":                 {setting("preferencePolicy", "Ignore"), func(o *operator.Options) { o.Core.PreferencePolicy = "Ignore" }},
		"minValuesPolicy":                  {setting("minValuesPolicy", "BestEffort"), func(o *operator.Options) { o.Core.MinValuesPolicy = "BestEffort" }},
		"ignoreDRARequests":                {setting("ignoreDRARequests", false), func(o *operator.Options) { o.Core.IgnoreDRARequests = false }},
		"disableClusterStateObservability": {setting("disableClusterStateObservability", true), func(o *operator.Options) { o.Core.DisableClusterStateObservability = true }},
		"offeringPriceMetrics":             {setting("offeringPriceMetrics", true), func(o *operator.Options) { o.OfferingPriceMetrics = true }},
		"allEvents":                        {setting("allEvents", true), func(o *operator.Options) { o.AllEvents = true }},
		"interruptionSignals": {
			setting("interruptionSignals", []string{"default", "taint:example.com/ends=spot:NoExecute", "condition:Ends=True"}),
			func(o *operator.Options) {
				o.InterruptionSignals = append(o.InterruptionSignals,
					signals.Signal{Taint: &corev1.Taint{Key: "example.com/ends", Value: "spot", Effect: corev1.TaintEffectNoExecute}},
					signals.Signal{Condition: "Ends", Status: corev1.ConditionTrue})
			},
		},
		"no interruptionSignals": {setting("interruptionSignals", []string{}), func(o *operator.Options) { o.InterruptionSignals = nil }},
		"allowedSecrets": {
			Values{"settings": Values{"allowedSecrets": []string{"workers-*", "label:example.com/for-templates"}, "clusterNamespace": "default"}},
			func(o *operator.Options) {
				o.ClusterNamespace, o.Allowed = "default", allowed("workers-*,label:example.com/for-templates", "")
			},
		},
		"allowedBaseTemplates": {
			setting("allowedBaseTemplates", []string{"KubeadmConfigTemplate/workers-*", "*/shared"}),
			func(o *operator.Options) { o.Allowed = allowed("", "KubeadmConfigTemplate/workers-*,*/shared") },
		},
		"reservedFields": {
			setting("reservedFields", []string{"-AWSMachine.iamInstanceProfile", "OwnMachine.role", "-label:node-role.kubernetes.io/worker"}),
			func(o *operator.Options) {
				o.Allowed = lo.Must(tenancy.Parse("", "", "-AWSMachine.iamInstanceProfile,OwnMachine.role,-label:node-role.kubernetes.io/worker"))
			},
		},
		"schedulerConfig": {
			setting("schedulerConfig", "podTopologySpread:\n  defaultConstraints:\n    - maxSkew: 3\n      topologyKey: kubernetes.io/hostname\n      whenUnsatisfiable: ScheduleAnyway\n"),
			func(o *operator.Options) {
				o.Core.SchedulerConfig = &coreoptions.SchedulerConfiguration{PodTopologySpread: &coreoptions.PodTopologySpreadConfig{
					DefaultConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 3, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway}},
				}}
			},
		},
		"logLevel":                  {Values{"logLevel": "debug"}, func(o *operator.Options) { o.Core.LogLevel = "debug" }},
		"logOutputPaths":            {Values{"logOutputPaths": []string{"stdout", "/log"}}, func(o *operator.Options) { o.Core.LogOutputPaths = "stdout,/log" }},
		"logErrorOutputPaths":       {Values{"logErrorOutputPaths": []string{"/log"}}, func(o *operator.Options) { o.Core.LogErrorOutputPaths = "/log" }},
		"metrics port":              {Values{"controller": Values{"metrics": Values{"port": 9090}}}, func(o *operator.Options) { o.Core.MetricsPort = 9090 }},
		"insecure metrics":          {Values{"controller": Values{"metrics": Values{"insecure": true}}}, func(o *operator.Options) { o.InsecureDiagnostics = true }},
		"health probe port":         {Values{"controller": Values{"healthProbe": Values{"port": 9091}}}, func(o *operator.Options) { o.Core.HealthProbePort = 9091 }},
		"a variable of the user":    {Values{"controller": Values{"env": []Values{{"name": "KUBE_CLIENT_QPS", "value": "7"}}}}, func(o *operator.Options) { o.Core.KubeClientQPS = 7 }},
		"resources":                 {Values{"controller": Values{"resources": Values{"requests": Values{"cpu": "2500m"}, "limits": Values{"memory": "2Gi"}}}}, func(o *operator.Options) { o.Core.CPURequests, o.Core.MemoryLimit = 2500, 2<<30 }},
		"nodeRepair":                {gate("nodeRepair", true), func(o *operator.Options) { o.Core.FeatureGates.NodeRepair = true }},
		"reservedCapacity":          {gate("reservedCapacity", false), func(o *operator.Options) { o.Core.FeatureGates.ReservedCapacity = false }},
		"spotToSpotConsolidation":   {gate("spotToSpotConsolidation", true), func(o *operator.Options) { o.Core.FeatureGates.SpotToSpotConsolidation = true }},
		"nodeOverlay":               {gate("nodeOverlay", true), func(o *operator.Options) { o.Core.FeatureGates.NodeOverlay = true }},
		"staticCapacity":            {gate("staticCapacity", true), func(o *operator.Options) { o.Core.FeatureGates.StaticCapacity = true }},
		"capacityBuffer":            {gate("capacityBuffer", true), func(o *operator.Options) { o.Core.FeatureGates.CapacityBuffer = true }},
		"terminateFirstDrift":       {gate("terminateFirstDrift", true), func(o *operator.Options) { o.Core.FeatureGates.TerminateFirstDrift = true }},
		"podDeletionCostManagement": {gate("podDeletionCostManagement", true), func(o *operator.Options) { o.Core.FeatureGates.PodDeletionCostManagement = true }},
		"terminateFirstRepair": {
			setting("featureGates", Values{"nodeRepair": true, "terminateFirstRepair": true}),
			func(o *operator.Options) {
				o.Core.FeatureGates.NodeRepair, o.Core.FeatureGates.TerminateFirstRepair = true, true
			},
		},
		"no feature gates": {setting("featureGates", nil), func(*operator.Options) {}},
		"management cluster": {
			managing(Values{}),
			func(o *operator.Options) {
				o.WorkloadKubeconfig = "/etc/karpenter-capi/workload-cluster/kubeconfig"
				o.ClusterName, o.ClusterNamespace = "demo", namespace
				o.Core.LeaderElectionName = operator.LeaseOf(namespace, "demo")
				o.NodeName = ""
			},
		},
		"workload cluster": {
			Values{"placement": "WorkloadCluster", "managementCluster": Values{"existingSecret": "management"}},
			func(o *operator.Options) {
				o.ClusterAPIKubeconfig = "/etc/karpenter-capi/management-cluster/kubeconfig"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// The chart's defaults must be those of the operator without any setting, in a container with the chart's
			// resources.
			t.Setenv("SYSTEM_NAMESPACE", namespace)
			want, err := operator.ParseOptions("--cpu-requests=1000", "--memory-limit=1073741824", "--node-name="+node)
			if err != nil {
				t.Fatal(err)
			}
			_ = os.Unsetenv("SYSTEM_NAMESPACE")
			if tc.want != nil {
				tc.want(want)
			}
			got := readSettings(t, the[appsv1.Deployment](t, render(t, Operator, tc.values), "Deployment"))
			if diff := cmp.Diff(want, got, unexported); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// readSettings lets the operator read its container's arguments and environment.
func readSettings(t *testing.T, deployment *appsv1.Deployment) *operator.Options {
	t.Helper()
	container := deployment.Spec.Template.Spec.Containers[0]
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			value = resolve(t, container, from)
		}
		if _, set := os.LookupEnv(variable.Name); set {
			t.Errorf("%s is set already", variable.Name)
		}
		t.Setenv(variable.Name, value)
	}
	options, err := operator.ParseOptions(container.Args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range container.Env {
		_ = os.Unsetenv(variable.Name)
	}
	return options
}

// resolve returns the value of a reference, as the kubelet resolves it.
func resolve(t *testing.T, container corev1.Container, from *corev1.EnvVarSource) string {
	t.Helper()
	switch {
	case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
		return namespace
	case from.FieldRef != nil && from.FieldRef.FieldPath == "spec.nodeName":
		return node
	case from.ResourceFieldRef != nil && from.ResourceFieldRef.ContainerName == container.Name:
		switch from.ResourceFieldRef.Resource + "/" + from.ResourceFieldRef.Divisor.String() {
		case "requests.cpu/1m":
			return strconv.FormatInt(container.Resources.Requests.Cpu().MilliValue(), 10)
		case "limits.memory/0":
			return strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10)
		}
	}
	t.Errorf("unknown reference %v", from)
	return ""
}

// The chart has values for exactly Karpenter's feature gates, with Karpenter's defaults.
func TestFeatureGates(t *testing.T) {
	want := map[string]any{}
	for _, gate := range coreoptions.KarpenterFeatureGates {
		want[strings.ToLower(gate.Name[:1])+gate.Name[1:]] = gate.Default
	}
	if diff := cmp.Diff(want, at(t, readValues(t, Operator), "settings", "featureGates")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without values, the operator uses its own defaults.
func TestLeastSettings(t *testing.T) {
	container := the[appsv1.Deployment](t, render(t, Operator, Matrix()["one cluster, least"]), "Deployment").Spec.Template.Spec.Containers[0]
	var got []string
	for _, variable := range container.Env {
		got = append(got, variable.Name)
	}
	slices.Sort(got)
	want := []string{"ALL_EVENTS", "CPU_REQUESTS", "DISABLE_CLUSTER_STATE_OBSERVABILITY", "HEALTH_PROBE_PORT", "IGNORE_DRA_REQUESTS", "INSECURE_DIAGNOSTICS", "MEMORY_LIMIT", "METRICS_PORT", "NODE_NAME", "OFFERING_PRICE_METRICS", "SYSTEM_NAMESPACE"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
