{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /*
The rules of some of the files in files/rules, which 'make charts' writes. Call it with a dict of root and files. With
rbac.infrastructureKinds, the rules for all kinds of infrastructure and bootstrap providers are narrowed to these, and to reading
what Cluster API creates from a template: the kind of awsmachinetemplates is that of awsmachines, too. The rules of the management
cluster include those to list and watch rbac.inventoryKinds.
*/}}
{{- define "karpenter-capi.rules" -}}
{{- $kinds := .root.Values.rbac.infrastructureKinds }}
{{- $rules := list }}
{{- range .files }}
{{- range $.root.Files.Get (printf "files/rules/%s.yaml" .) | fromYamlArray }}
{{- if and $kinds (has "*" .resources) (has "infrastructure.cluster.x-k8s.io" .apiGroups) }}
{{- $rule := . }}
{{- range $kinds }}
{{- $verbs := ternary (list "get" "list" "watch") $rule.verbs (default false .readOnly) }}
{{- $rules = append $rules (dict "apiGroups" (list .apiGroup) "resources" .resources "verbs" $verbs) }}
{{- $created := list }}
{{- range .resources }}
{{- if hasSuffix "templates" . }}
{{- $created = append $created (printf "%ss" (trimSuffix "templates" .)) }}
{{- end }}
{{- end }}
{{- if $created }}
{{- $rules = append $rules (dict "apiGroups" (list .apiGroup) "resources" $created "verbs" (list "get" "list" "watch")) }}
{{- end }}
{{- end }}
{{- else }}
{{- $rules = append $rules . }}
{{- end }}
{{- end }}
{{- end }}
{{- if has "management" .files }}
{{- range .root.Values.rbac.inventoryKinds }}
{{- $rules = append $rules (dict "apiGroups" (list .apiGroup) "resources" .resources "verbs" (list "list" "watch")) }}
{{- end }}
{{- end }}
{{- toYaml $rules }}
{{- end }}
