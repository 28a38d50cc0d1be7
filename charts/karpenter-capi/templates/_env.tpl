{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* The variables that the chart sets. Settings are variables and not arguments, as in Karpenter's charts. */}}
{{- define "karpenter-capi.env" -}}
{{- $container := .Values.controller.containerName }}
- name: SYSTEM_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: CPU_REQUESTS
  valueFrom:
    resourceFieldRef:
      containerName: {{ $container }}
      resource: requests.cpu
      divisor: 1m
- name: MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ $container }}
      resource: limits.memory
      divisor: "0"
- name: METRICS_PORT
  value: {{ .Values.controller.metrics.port | quote }}
- name: HEALTH_PROBE_PORT
  value: {{ .Values.controller.healthProbe.port | quote }}
{{- if eq .Values.placement "WorkloadCluster" }}
- name: CLUSTER_API_KUBECONFIG
  value: /etc/karpenter-capi/management-cluster/kubeconfig
{{- end }}
{{- $values := dict
  "CLUSTER_NAME" .Values.settings.clusterName
  "CLUSTER_NAMESPACE" .Values.settings.clusterNamespace
  "LOG_LEVEL" .Values.logLevel
  "LOG_OUTPUT_PATHS" (join "," .Values.logOutputPaths)
  "LOG_ERROR_OUTPUT_PATHS" (join "," .Values.logErrorOutputPaths)
  "BATCH_MAX_DURATION" .Values.settings.batchMaxDuration
  "BATCH_IDLE_DURATION" .Values.settings.batchIdleDuration
  "PREFERENCE_POLICY" .Values.settings.preferencePolicy
  "MIN_VALUES_POLICY" .Values.settings.minValuesPolicy
  "SCHEDULER_CONFIG" .Values.settings.schedulerConfig
  "IGNORE_DRA_REQUESTS" .Values.settings.ignoreDRARequests
  "DISABLE_CLUSTER_STATE_OBSERVABILITY" .Values.settings.disableClusterStateObservability
  "FEATURE_GATES" (include "karpenter-capi.featureGates" .)
}}
{{- range $name, $value := $values }}
{{- /* Without a value the operator has its own default. */}}
{{- if not (has (toString $value) (list "" "<nil>")) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}
