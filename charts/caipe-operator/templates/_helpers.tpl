{{/* The chart's name, cut to the length of a label. */}}
{{- define "caipe-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of most objects. If the release's name contains the chart's name, the name is not repeated. */}}
{{- define "caipe-operator.fullname" -}}
{{- $name := include "caipe-operator.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The Service for the metrics. Its name must begin with a letter and contain no dot, unlike the names of other objects. */}}
{{- define "caipe-operator.metricsName" -}}
{{- $name := include "caipe-operator.fullname" . | replace "." "-" }}
{{- printf "%s%s-metrics" (regexMatch "^[0-9]" $name | ternary "op-" "") $name }}
{{- end }}

{{/* The selector of the operator's pods. It never changes within a release. */}}
{{- define "caipe-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "caipe-operator.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* The labels of every object. The labels of a user cannot override the selector. */}}
{{- define "caipe-operator.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_")
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service }}
{{- merge (include "caipe-operator.commonLabels" . | fromYaml) $own | toYaml }}
{{- end }}

{{/* The labels that objects and pods have in common. */}}
{{- define "caipe-operator.commonLabels" -}}
{{- $own := dict "app.kubernetes.io/component" "operator" "app.kubernetes.io/part-of" "caipe" }}
{{- merge (include "caipe-operator.selectorLabels" . | fromYaml) .Values.commonLabels $own | toYaml }}
{{- end }}

{{/* The operator's image. */}}
{{- define "caipe-operator.image" -}}
{{- with .Values.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "caipe-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "caipe-operator.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: say which ServiceAccount the operator is, or let the chart make one (serviceAccount.create)" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The name of the Lease. All releases in a namespace share it, so that two operators never manage the same resources. */}}
{{- define "caipe-operator.lease" -}}
caipe-operator
{{- end }}

{{/* The defaults of supervisors: the content of the file of `--defaults`. */}}
{{- define "caipe-operator.defaults" -}}
{{- with .Values.defaults -}}
image: {{ default (include "caipe-operator.image" $) .image | quote }}
{{- with .toolsImage }}
toolsImage: {{ . | quote }}
{{- end }}
{{- with .imagePullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- with .imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .resources }}
# Quantities are strings, because YAML would rewrite large numbers and fractions.
resources:
  {{- range $what, $amounts := . }}
  {{- with $amounts }}
  {{ $what }}:
    {{- range $name, $amount := . }}
    {{ $name }}: {{ $amount | quote }}
    {{- end }}
  {{- end }}
  {{- end }}
{{- end }}
{{- with .podTemplate }}
podTemplate:
  {{- toYaml . | nindent 2 }}
{{- end }}
drainSeconds: {{ .drainSeconds }}
rollouts:
  {{- toYaml .rollouts | nindent 2 }}
restrictions:
  {{- toYaml .restrictions | nindent 2 }}
{{- if eq (include "caipe-operator.fixedUserIds" $) "false" }}
fixedUserIds: false
{{- end }}
{{- end }}
# The operator's pods, which the NetworkPolicies of supervisors allow.
operator:
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "caipe-operator.selectorLabels" . | nindent 4 }}
{{- end }}

{{/* Whether the pods of supervisors run as a fixed user. */}}
{{- define "caipe-operator.fixedUserIds" -}}
{{- if eq (toString .Values.defaults.fixedUserIds) "auto" -}}
{{- not (.Capabilities.APIVersions.Has "security.openshift.io/v1") -}}
{{- else -}}
{{- .Values.defaults.fixedUserIds -}}
{{- end -}}
{{- end }}

{{/* The labels of the pod of `helm test`. They differ from the selector of the operator's pods. */}}
{{- define "caipe-operator.testLabels" -}}
app.kubernetes.io/name: {{ include "caipe-operator.name" . | trunc 58 | trimSuffix "-" }}-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}
