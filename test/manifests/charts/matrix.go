// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"maps"
	"strings"
)

// CertificateAuthority is a certificate in PEM; its key does not exist.
const CertificateAuthority = `-----BEGIN CERTIFICATE-----
MIIBMzCB2qADAgECAgEBMAoGCCqGSM49BAMCMA0xCzAJBgNVBAMTAmNhMB4XDTI2
-----END CERTIFICATE-----
`

// MatrixNamespace is the namespace of the releases with the values of Matrix.
const MatrixNamespace = "karpenter"

// Matrix returns valid values of the operator's chart: each placement with only what it needs, and with everything that
// can be set.
func Matrix() map[string]Values {
	existing := Values{"existingSecret": "management", "existingSecretKey": "value"}
	generated := Values{"server": "https://management.example.com:8443", "certificateAuthority": CertificateAuthority, "token": "secret"}
	return map[string]Values{
		"one cluster":                  {},
		"one cluster, all":             all(Values{}),
		"one cluster, least":           least(),
		"one cluster, defaults":        {"defaults": Defaults()},
		"workload cluster, existing":   {"placement": "WorkloadCluster", "managementCluster": existing},
		"workload cluster, generated":  {"placement": "WorkloadCluster", "managementCluster": generated},
		"workload cluster, all":        all(Values{"placement": "WorkloadCluster", "managementCluster": generated}),
		"management cluster":           managing(Values{}),
		"management cluster, existing": managing(Values{"workloadCluster": Values{"existingSecret": "workload", "existingSecretKey": "kubeconfig"}}),
		"management cluster, all":      managing(all(Values{})),
		"identity":                     {"placement": "Identity", "settings": Values{"clusterNamespace": "default"}},
		"identity, existing":           {"placement": "Identity", "settings": Values{"clusterNamespace": "default"}, "serviceAccount": Values{"create": false, "name": "mine"}},
	}
}

// managing adds the values for an operator in the management cluster. It is in the namespace of its Cluster.
func managing(values Values) Values {
	settings, _ := values["settings"].(Values)
	values["placement"], values["settings"] = "ManagementCluster", Values{}
	maps.Copy(values["settings"].(Values), settings)
	maps.Copy(values["settings"].(Values), Values{"clusterName": "demo", "clusterNamespace": MatrixNamespace})
	return values
}

// Defaults returns values for a template that follows a MachineDeployment of a topology, and its NodePool.
func Defaults() Values {
	return Values{
		"enabled": true, "name": "general", "from": Values{"machineDeploymentTopology": "md-0"},
		"catalogRefs": []Values{{"name": "aws-us-east-1"}},
		"template":    Values{"maxMachines": 100, "template": Values{"metadata": Values{"labels": Values{"team": "platform"}}}},
		"nodePool": Values{
			"limits": Values{"cpu": "1000"},
			"template": Values{"spec": Values{"requirements": []Values{
				{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []string{"spot"}},
			}}},
		},
	}
}

// all adds something for everything that can be set.
func all(values Values) Values {
	list := func(items ...Values) []Values { return items }
	mine := Values{"example.com/mine": "yes"}
	maps.Copy(values, Values{
		"fullnameOverride":      "karpenter",
		"additionalLabels":      mine,
		"additionalAnnotations": mine,
		"imagePullPolicy":       "Always",
		"imagePullSecrets":      list(Values{"name": "registry"}),
		"service":               Values{"annotations": mine},
		"serviceAccount":        Values{"name": "karpenter-manager", "annotations": mine},
		"additionalClusterRoleRules": list(Values{
			"apiGroups": []string{"infrastructure.example.com"}, "resources": []string{"*"}, "verbs": []string{"get"},
		}),
		"rbac": Values{"infrastructureKinds": list(
			Values{"apiGroup": "infrastructure.cluster.x-k8s.io", "resources": []string{"awsmachinetemplates"}},
			Values{"apiGroup": "infrastructure.cluster.x-k8s.io", "resources": []string{"azuremachinepoolmachines"}, "readOnly": true},
			Values{"apiGroup": "bootstrap.cluster.x-k8s.io", "resources": []string{"kubeadmconfigtemplates"}},
		), "inventoryKinds": list(Values{"apiGroup": "metal3.io", "resources": []string{"baremetalhosts"}})},
		"serviceMonitor": Values{
			"enabled": true, "additionalLabels": mine, "sampleLimit": 5000, "endpointConfig": Values{"interval": "30s"},
			"authorization":     Values{"credentials": Values{"name": "prometheus-token", "key": "token"}},
			"relabelings":       list(Values{"action": "labeldrop", "regex": "pod"}),
			"metricRelabelings": list(Values{"action": "labeldrop", "regex": "pod"}),
		},
		"prometheusRule": Values{
			"enabled": true, "additionalLabels": mine, "additionalRules": list(Values{"alert": "Mine", "expr": "vector(1)"}),
		},
		"grafanaDashboards": Values{"enabled": true, "additionalLabels": mine},
		"networkPolicy": Values{
			"enabled":          true,
			"metricsFrom":      list(Values{"namespaceSelector": Values{}}),
			"apiServerPorts":   []int{6443},
			"additionalEgress": list(Values{"ports": list(Values{"port": 4317})}),
		},
		"replicas":                      3,
		"revisionHistoryLimit":          2,
		"strategy":                      Values{"type": "Recreate", "rollingUpdate": nil},
		"podLabels":                     mine,
		"podAnnotations":                mine,
		"podDisruptionBudget":           Values{"name": "budget", "maxUnavailable": "50%"},
		"podSecurityContext":            Values{"runAsNonRoot": true},
		"priorityClassName":             "system-node-critical",
		"terminationGracePeriodSeconds": 20,
		"hostNetwork":                   true,
		"schedulerName":                 "other",
		"dnsPolicy":                     "ClusterFirstWithHostNet",
		"dnsConfig":                     Values{"options": list(Values{"name": "ndots", "value": "1"})},
		"hostAliases":                   list(Values{"ip": "10.0.0.1", "hostnames": []string{"management.example.com"}}),
		"enableServiceLinks":            true,
		"initContainers":                list(Values{"name": "first", "image": "first"}),
		"nodeSelector":                  mine,
		"affinity": Values{
			"podAntiAffinity": Values{
				"requiredDuringSchedulingIgnoredDuringExecution":  list(Values{"topologyKey": "kubernetes.io/hostname"}),
				"preferredDuringSchedulingIgnoredDuringExecution": nil,
			},
			"podAffinity": Values{
				"requiredDuringSchedulingIgnoredDuringExecution": list(Values{
					"topologyKey": "topology.kubernetes.io/region", "labelSelector": Values{"matchLabels": mine},
				}),
			},
		},
		"topologySpreadConstraints": list(
			Values{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"},
			Values{"maxSkew": 2, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": Values{"matchLabels": mine}},
		),
		"tolerations":  list(Values{"operator": "Exists"}),
		"extraVolumes": list(Values{"name": "more", "emptyDir": Values{}}),
		"controller": Values{
			"containerName": "manager",
			"image":         Values{"repository": "example.com/mine", "tag": "v1", "digest": "sha256:" + strings.Repeat("0", 64)},
			"env":           list(Values{"name": "HTTPS_PROXY", "value": "http://proxy.example.com"}),
			"envFrom":       list(Values{"configMapRef": Values{"name": "mine", "optional": true}}),
			"securityContext": Values{
				"runAsUser": 1000, "runAsGroup": 1001,
				"appArmorProfile": Values{"type": "RuntimeDefault"},
				"seLinuxOptions":  Values{"level": "s0:c1"},
				"seccompProfile":  Values{"type": "RuntimeDefault"},
			},
			"resources":         Values{"requests": Values{"cpu": "2", "memory": "2Gi"}, "limits": Values{"memory": "2Gi"}},
			"extraVolumeMounts": list(Values{"name": "more", "mountPath": "/more"}),
			"sidecarContainer":  list(Values{"name": "beside", "image": "beside"}),
			"metrics":           Values{"port": 9090, "certificateSecret": "metrics-tls"},
			"healthProbe":       Values{"port": 9091},
			"livenessProbe":     Values{"initialDelaySeconds": 60, "failureThreshold": 5, "terminationGracePeriodSeconds": 10},
			"readinessProbe":    Values{"periodSeconds": 5, "successThreshold": 2},
		},
		"logLevel":            "debug",
		"logOutputPaths":      []string{"stdout", "/dev/null"},
		"logErrorOutputPaths": []string{"stdout"},
		"settings": Values{
			"clusterName": "demo", "clusterNamespace": "default",
			"batchMaxDuration": "1m30s", "batchIdleDuration": "500ms",
			"preferencePolicy": "Ignore", "minValuesPolicy": "BestEffort",
			"schedulerConfig":   "podTopologySpread:\n  defaultConstraints:\n    - {maxSkew: 3, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}\n",
			"ignoreDRARequests": false, "disableClusterStateObservability": true, "allEvents": true, "offeringPriceMetrics": true,
			"interruptionSignals": []string{"default", "taint:example.com/ends"},
			"featureGates": Values{
				"nodeRepair": true, "reservedCapacity": false, "spotToSpotConsolidation": true, "nodeOverlay": true,
				"staticCapacity": true, "capacityBuffer": true, "terminateFirstDrift": true, "terminateFirstRepair": true,
				"podDeletionCostManagement": true,
			},
		},
		"extraObjects": []any{
			Values{"apiVersion": "v1", "kind": "ConfigMap", "metadata": Values{"name": "mine", "namespace": "{{ .Release.Namespace }}"}},
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: text\n  namespace: {{ .Release.Namespace }}\n",
		},
	})
	return values
}

// least removes everything that can be removed.
func least() Values {
	return Values{
		"replicas": 1, "strategy": nil, "podSecurityContext": nil, "priorityClassName": "", "schedulerName": "", "dnsPolicy": nil,
		"nodeSelector": nil, "affinity": nil, "topologySpreadConstraints": nil, "tolerations": nil,
		"serviceAccount": Values{"create": false, "name": "mine"},
		"controller":     Values{"resources": nil, "securityContext": nil, "livenessProbe": nil, "readinessProbe": nil},
		"logLevel":       nil, "logOutputPaths": nil, "logErrorOutputPaths": nil,
		"settings": Values{
			"batchMaxDuration": nil, "batchIdleDuration": nil, "preferencePolicy": nil, "minValuesPolicy": nil, "interruptionSignals": nil, "featureGates": nil,
		},
	}
}
