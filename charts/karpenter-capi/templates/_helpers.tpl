{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "karpenter-capi.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of all objects: the release's, with the chart's unless that is in it. */}}
{{- define "karpenter-capi.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- $name = .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}
{{- $name = .Release.Name }}
{{- else }}
{{- $name = printf "%s-%s" .Release.Name $name }}
{{- end }}
{{- $name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of cluster-wide objects. In a management cluster, releases in several namespaces can have the same name. */}}
{{- define "karpenter-capi.clusterWideName" -}}
{{- eq .Values.placement "ManagementCluster" | ternary (printf "%s." .Release.Namespace) "" }}{{ include "karpenter-capi.fullname" . }}
{{- end }}

{{- define "karpenter-capi.serviceAccountName" -}}
{{- default (include "karpenter-capi.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "karpenter-capi.selectorLabels" -}}
app.kubernetes.io/name: {{ include "karpenter-capi.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "karpenter-capi.labels" -}}
{{ include "karpenter-capi.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /*
Labels and annotations of an object: those of all objects, and those it alone has. Call it with a dict of root and, if there
are, labels and annotations.
*/}}
{{- define "karpenter-capi.metadata" -}}
labels:
  {{- merge (include "karpenter-capi.labels" .root | fromYaml) (.labels | default dict) (.root.Values.additionalLabels | default dict) | toYaml | nindent 2 }}
{{- with merge dict (.annotations | default dict) (.root.Values.additionalAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "karpenter-capi.image" -}}
{{- with .Values.controller.image -}}
{{- .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}
{{- end }}

{{- /* The Secret with the kubeconfig for the management cluster: one that is there, or the one that this chart makes. */}}
{{- define "karpenter-capi.kubeconfigSecret" -}}
{{- .Values.managementCluster.existingSecret | default (printf "%s-management-kubeconfig" (include "karpenter-capi.fullname" .)) }}
{{- end }}

{{- /* The kubeconfig of the other cluster, which the Pods mount: a dict of name, path, secret and key; empty in one cluster. */}}
{{- define "karpenter-capi.mounted" -}}
{{- if eq .Values.placement "WorkloadCluster" }}
{{- dict "name" "management-kubeconfig" "path" "/etc/karpenter-capi/management-cluster" "secret" (include "karpenter-capi.kubeconfigSecret" .) "key" (empty .Values.managementCluster.existingSecret | ternary "kubeconfig" .Values.managementCluster.existingSecretKey) | toYaml }}
{{- else if eq .Values.placement "ManagementCluster" }}
{{- $secret := .Values.workloadCluster.existingSecret | default (printf "%s-kubeconfig" .Values.settings.clusterName) }}
{{- dict "name" "workload-kubeconfig" "path" "/etc/karpenter-capi/workload-cluster" "secret" $secret "key" .Values.workloadCluster.existingSecretKey | toYaml }}
{{- end }}
{{- end }}

{{- /* Who the operator is. */}}
{{- define "karpenter-capi.subjects" -}}
- kind: ServiceAccount
  name: {{ include "karpenter-capi.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* The feature gates as the operator reads them. */}}
{{- define "karpenter-capi.featureGates" -}}
{{- $gates := list }}
{{- range $name, $on := .Values.settings.featureGates }}
{{- $gates = append $gates (printf "%s%s=%t" (substr 0 1 $name | upper) (substr 1 -1 $name) $on) }}
{{- end }}
{{- join "," $gates }}
{{- end }}

{{- /*
A list of topology spread constraints or Pod affinity terms, in which what has no labelSelector gets one for the operator's
Pods. Call it with a dict of root and terms.
*/}}
{{- define "karpenter-capi.selecting" -}}
{{- $selector := dict "matchLabels" (include "karpenter-capi.selectorLabels" .root | fromYaml) }}
{{- $terms := list }}
{{- range .terms }}
{{- $terms = append $terms (hasKey . "labelSelector" | ternary . (set (deepCopy .) "labelSelector" $selector)) }}
{{- end }}
{{- toYaml $terms }}
{{- end }}

{{- /* The affinity, with labelSelectors. */}}
{{- define "karpenter-capi.affinity" -}}
{{- $affinity := deepCopy .Values.affinity }}
{{- range $kind := list "podAffinity" "podAntiAffinity" }}
{{- with get $affinity $kind }}
{{- with .requiredDuringSchedulingIgnoredDuringExecution }}
{{- $terms := include "karpenter-capi.selecting" (dict "root" $ "terms" .) | fromYamlArray }}
{{- $_ := set (get $affinity $kind) "requiredDuringSchedulingIgnoredDuringExecution" $terms }}
{{- end }}
{{- range .preferredDuringSchedulingIgnoredDuringExecution }}
{{- $term := include "karpenter-capi.selecting" (dict "root" $ "terms" (list .podAffinityTerm)) | fromYamlArray | first }}
{{- $_ := set . "podAffinityTerm" $term }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}
