{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* The variables that come from values. Settings are variables and not arguments, as in Karpenter's charts. */}}
{{- define "karpenter-capi.settings" -}}
{{- dict
  "CLUSTER_API_KUBECONFIG" (eq .Values.placement "WorkloadCluster" | ternary "/etc/karpenter-capi/management-cluster/kubeconfig" "")
  "WORKLOAD_KUBECONFIG" (eq .Values.placement "ManagementCluster" | ternary "/etc/karpenter-capi/workload-cluster/kubeconfig" "")
  "CLUSTER_NAME" .Values.settings.clusterName
  "CLUSTER_NAMESPACE" .Values.settings.clusterNamespace
  "METRICS_PORT" .Values.controller.metrics.port
  "INSECURE_DIAGNOSTICS" .Values.controller.metrics.insecure
  "METRICS_CERT_PATH" (empty .Values.controller.metrics.certificateSecret | ternary "" "/etc/karpenter-capi/metrics")
  "HEALTH_PROBE_PORT" .Values.controller.healthProbe.port
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
  "ALL_EVENTS" .Values.settings.allEvents
  "OFFERING_PRICE_METRICS" .Values.settings.offeringPriceMetrics
  "INTERRUPTION_SIGNALS" (kindIs "slice" .Values.settings.interruptionSignals | ternary (join "," .Values.settings.interruptionSignals | default "none") "")
  "ALLOWED_SECRETS" (join "," .Values.settings.allowedSecrets)
  "ALLOWED_BASE_TEMPLATES" (join "," .Values.settings.allowedBaseTemplates)
  "RESERVED_FIELDS" (join "," .Values.settings.reservedFields)
  "FEATURE_GATES" (include "karpenter-capi.featureGates" .)
  | toYaml }}
{{- end }}

{{- /* All variables that the chart sets. */}}
{{- define "karpenter-capi.env" -}}
- name: SYSTEM_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
- name: CPU_REQUESTS
  valueFrom:
    resourceFieldRef:
      containerName: {{ .Values.controller.containerName }}
      resource: requests.cpu
      divisor: 1m
- name: MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ .Values.controller.containerName }}
      resource: limits.memory
      divisor: "0"
{{- range $name, $value := include "karpenter-capi.settings" . | fromYaml }}
{{- /* Without a value the operator has its own default. */}}
{{- if not (has (toString $value) (list "" "<nil>")) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}
