// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// An invalid value is rejected, and the message names it.
func TestWrongValues(t *testing.T) {
	helm := newHelm(t)
	workload := func(management Values) Values {
		return Values{"placement": "WorkloadCluster", "managementCluster": management}
	}
	settings := func(name string, value any) Values { return Values{"settings": Values{name: value}} }
	controller := func(name string, value any) Values { return Values{"controller": Values{name: value}} }
	for name, tc := range map[string]struct {
		chart  string // the operator's by default
		values Values
		want   []string
	}{
		"unknown":                  {values: Values{"replicaCount": 1}, want: []string{"additional properties 'replicaCount' not allowed"}},
		"unknown setting":          {values: settings("interruptionQueue", "q"), want: []string{"at '/settings': additional properties 'interruptionQueue'"}},
		"unknown gate":             {values: settings("featureGates", Values{"drift": true}), want: []string{"at '/settings/featureGates': additional properties 'drift'"}},
		"unknown of an image":      {values: controller("image", Values{"name": "x"}), want: []string{"at '/controller/image': additional properties 'name'"}},
		"unknown placement":        {values: Values{"placement": "Both"}, want: []string{"at '/placement': value must be one of 'OneCluster', 'WorkloadCluster', 'ManagementCluster', 'Identity'"}},
		"unknown of CRDs":          {chart: CRDs, values: Values{"nodeOverlay": Values{}}, want: []string{"additional properties 'nodeOverlay'"}},
		"type of replicas":         {values: Values{"replicas": "two"}, want: []string{"at '/replicas': got string, want integer"}},
		"type of a gate":           {values: settings("featureGates", Values{"nodeRepair": "true"}), want: []string{"at '/settings/featureGates/nodeRepair': got string, want boolean"}},
		"type of tolerations":      {values: Values{"tolerations": Values{"operator": "Exists"}}, want: []string{"at '/tolerations': got object, want array"}},
		"type of an annotation":    {values: Values{"podAnnotations": Values{"a": true}}, want: []string{"at '/podAnnotations/a': got boolean, want string"}},
		"type of a part of CRDs":   {chart: CRDs, values: Values{"karpenter": false}, want: []string{"at '/karpenter': got boolean, want object"}},
		"duration":                 {values: settings("batchMaxDuration", "10"), want: []string{"at '/settings/batchMaxDuration': '10' does not match"}},
		"policy":                   {values: settings("preferencePolicy", "respect"), want: []string{"at '/settings/preferencePolicy': value must be one of 'Respect', 'Ignore'"}},
		"log level":                {values: Values{"logLevel": "warn"}, want: []string{"at '/logLevel': value must be one of"}},
		"digest":                   {values: controller("image", Values{"digest": "abc"}), want: []string{"at '/controller/image/digest'"}},
		"port":                     {values: controller("metrics", Values{"port": 70000}), want: []string{"at '/controller/metrics/port'"}},
		"share":                    {values: Values{"podDisruptionBudget": Values{"maxUnavailable": "half"}}, want: []string{"at '/podDisruptionBudget/maxUnavailable'"}},
		"server without https":     {values: workload(Values{"server": "10.0.0.1:6443", "token": "t"}), want: []string{"at '/managementCluster/server'"}},
		"authority not in PEM":     {values: workload(Values{"server": "https://m", "token": "t", "certificateAuthority": "MIIB"}), want: []string{"at '/managementCluster/certificateAuthority'"}},
		"removed":                  {values: Values{"controller": nil}, want: []string{"missing property 'controller'"}},
		"no kubeconfig":            {values: workload(Values{}), want: []string{"placement WorkloadCluster requires a kubeconfig: set managementCluster.existingSecret, or managementCluster.server and managementCluster.token"}},
		"server without token":     {values: workload(Values{"server": "https://m"}), want: []string{"managementCluster.token is required with managementCluster.server"}},
		"token without server":     {values: workload(Values{"token": "t"}), want: []string{"managementCluster.server is required with managementCluster.token"}},
		"two kubeconfigs":          {values: workload(Values{"existingSecret": "s", "server": "https://m", "token": "t"}), want: []string{"managementCluster.server and managementCluster.existingSecret are both set", "managementCluster.token and"}},
		"unused kubeconfig":        {values: Values{"managementCluster": Values{"existingSecret": "s"}}, want: []string{"managementCluster.existingSecret is set, but with placement OneCluster"}},
		"unused token":             {values: Values{"placement": "Identity", "managementCluster": Values{"token": "t"}, "settings": Values{"clusterNamespace": "c"}}, want: []string{"managementCluster.token is set, but with placement Identity"}},
		"rights without namespace": {values: Values{"placement": "Identity"}, want: []string{"placement Identity requires settings.clusterNamespace"}},
		"no Cluster to serve": {values: Values{"placement": "ManagementCluster"}, want: []string{
			"placement ManagementCluster requires settings.clusterName", "placement ManagementCluster requires settings.clusterNamespace",
		}},
		"Secret elsewhere": {values: Values{"placement": "ManagementCluster", "settings": Values{"clusterName": "demo", "clusterNamespace": "c"}}, want: []string{
			"Cluster API's Secret with the kubeconfig is in the namespace c, and Pods in the namespace karpenter cannot mount it",
		}},
		"unused workload cluster": {values: Values{"workloadCluster": Values{"existingSecret": "s"}}, want: []string{"workloadCluster.existingSecret is set, but with placement OneCluster"}},
		"defaults elsewhere": {values: Values{"placement": "ManagementCluster", "settings": Values{"clusterName": "demo", "clusterNamespace": "karpenter"}, "defaults": Defaults()}, want: []string{
			"defaults.enabled is set, but with placement ManagementCluster this is not the cluster of NodePools",
		}},
		"metrics without operator": {values: Values{"placement": "Identity", "settings": Values{"clusterNamespace": "c"}, "serviceMonitor": Values{"enabled": true}}, want: []string{"serviceMonitor.enabled is set, but"}},
		"account without a name":   {values: Values{"serviceAccount": Values{"create": false}}, want: []string{"serviceAccount.name is required with serviceAccount.create false"}},
		"one port for two":         {values: controller("healthProbe", Values{"port": 8080}), want: []string{"controller.metrics.port and controller.healthProbe.port are the same"}},
		"variable that is a value": {values: controller("env", []Values{{"name": "CLUSTER_NAME", "value": "x"}}), want: []string{"controller.env has CLUSTER_NAME, which another value of the chart sets"}},
		"variable of a placement":  {values: controller("env", []Values{{"name": "CLUSTER_API_KUBECONFIG", "value": "x"}}), want: []string{"controller.env has CLUSTER_API_KUBECONFIG"}},
		"gate that needs another":  {values: settings("featureGates", Values{"terminateFirstRepair": true}), want: []string{"settings.featureGates.terminateFirstRepair requires settings.featureGates.nodeRepair"}},
		"allowed Secret":           {values: settings("allowedSecrets", []string{"Not_A_Name"}), want: []string{"at '/settings/allowedSecrets/0'"}},
		"root":                     {values: controller("securityContext", Values{"runAsUser": 0}), want: []string{"at '/controller/securityContext/runAsUser'"}},
		"another kind of probe":    {values: controller("livenessProbe", Values{"exec": Values{}}), want: []string{"at '/controller/livenessProbe'"}},
		"an object that is none":   {values: Values{"extraObjects": []any{1}}, want: []string{"at '/extraObjects/0'"}},
		"certificate without TLS":  {values: controller("metrics", Values{"insecure": true, "certificateSecret": "s"}), want: []string{"controller.metrics.certificateSecret is set, but controller.metrics.insecure serves metrics by HTTP"}},
		"base template, no kind":   {values: settings("allowedBaseTemplates", []string{"workers"}), want: []string{"at '/settings/allowedBaseTemplates/0'"}},
		"label without namespace":  {values: settings("allowedSecrets", []string{"label:for-templates=yes"}), want: []string{"a label in settings.allowedSecrets requires settings.clusterNamespace"}},
		"name of defaults":         {values: Values{"defaults": Values{"name": "My Pool"}}, want: []string{"at '/defaults/name': 'My Pool' does not match"}},
		"defaults of nothing": {values: Values{"defaults": Values{"enabled": true}}, want: []string{
			"defaults.enabled requires defaults.from, such as {machineDeploymentTopology: md-0}", "defaults.enabled requires instance types: set defaults.catalogRefs"}},
		"defaults without operator": {values: Values{"placement": "Identity", "settings": Values{"clusterNamespace": "c"}, "defaults": Defaults()}, want: []string{"defaults.enabled is set, but with placement Identity"}},
		"more than one, all named":  {values: Values{"managementCluster": Values{"token": "t"}, "serviceAccount": Values{"create": false}}, want: []string{"managementCluster.token", "serviceAccount.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			chart := tc.chart
			if chart == "" {
				chart = Operator
			}
			_, err := helm.Template(t.Context(), release, namespace, chart, tc.values)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

// The chart has the keys of Karpenter's charts.
func TestKnownValues(t *testing.T) {
	values := readValues(t, Operator)
	for _, path := range strings.Fields(`
		nameOverride fullnameOverride additionalLabels additionalAnnotations imagePullPolicy imagePullSecrets service.annotations
		serviceAccount.create serviceAccount.name serviceAccount.annotations additionalClusterRoleRules serviceMonitor.enabled
		serviceMonitor.additionalLabels serviceMonitor.relabelings serviceMonitor.metricRelabelings serviceMonitor.endpointConfig
		serviceMonitor.sampleLimit replicas revisionHistoryLimit strategy podLabels podAnnotations podDisruptionBudget.name
		podDisruptionBudget.maxUnavailable podSecurityContext priorityClassName terminationGracePeriodSeconds hostNetwork
		schedulerName dnsPolicy dnsConfig initContainers nodeSelector affinity topologySpreadConstraints tolerations extraVolumes
		controller.containerName controller.image.repository controller.image.tag controller.image.digest controller.env
		controller.envFrom controller.securityContext.appArmorProfile controller.securityContext.seLinuxOptions
		controller.securityContext.seccompProfile controller.resources controller.extraVolumeMounts controller.sidecarContainer
		controller.metrics.port controller.healthProbe.port logLevel logOutputPaths logErrorOutputPaths settings.batchMaxDuration
		settings.batchIdleDuration settings.preferencePolicy settings.minValuesPolicy settings.ignoreDRARequests
		settings.schedulerConfig settings.clusterName settings.disableClusterStateObservability settings.featureGates.nodeRepair`) {
		at(t, values, strings.Split(path, ".")...)
	}
}

// The schema has exactly the keys of values.yaml, in addition to those without a default.
func TestSchema(t *testing.T) {
	without := map[string][]string{
		Operator: {"affinity.podAffinity", "controller.resources.claims", "global"},
		CRDs:     {"global"},
	}
	for chart, want := range without {
		t.Run(chart, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(Chart(chart), "values.schema.json"))
			if err != nil {
				t.Fatal(err)
			}
			root := schema{}
			if err := json.Unmarshal(text, &root); err != nil {
				t.Fatal(err)
			}
			got := root.compare(t, root, "", readValues(t, chart))
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("keys of the schema that values.yaml does not have (-want +got):\n%s", diff)
			}
		})
	}
}

// schema has the fields of a JSON schema that this test needs.
type schema struct {
	Ref                  string            `json:"$ref"`
	Definitions          map[string]schema `json:"definitions"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties any               `json:"additionalProperties"`
}

// compare returns the keys that are in the schema but not in the values. It reports keys that are only in the values, and
// objects of the schema that allow additional keys, as errors.
func (s schema) compare(t *testing.T, root schema, path string, values map[string]any) []string {
	t.Helper()
	if s.Ref != "" {
		s = root.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
	}
	if len(s.Properties) == 0 {
		return nil
	}
	if s.AdditionalProperties != false {
		t.Errorf("the schema allows any key in %q", path)
	}
	var missing []string
	for key, property := range s.Properties {
		value, there := values[key]
		if !there {
			missing = append(missing, path+key)
		}
		if nested, ok := value.(map[string]any); ok {
			missing = append(missing, property.compare(t, root, path+key+".", nested)...)
		}
	}
	for key := range values {
		if _, there := s.Properties[key]; !there {
			t.Errorf("the schema does not have %s%s", path, key)
		}
	}
	return missing
}

// readValues returns the values of a chart.
func readValues(t *testing.T, chart string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Chart(chart), "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// at returns the value at a path.
func at(t *testing.T, values map[string]any, path ...string) any {
	t.Helper()
	value, there := values[path[0]]
	if !there {
		t.Errorf("values.yaml does not have %s", strings.Join(path, "."))
	}
	if len(path) == 1 || !there {
		return value
	}
	nested, _ := value.(map[string]any)
	return at(t, nested, path[1:]...)
}
