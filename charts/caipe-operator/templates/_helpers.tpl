{{/* The chart's name, at most a label long. */}}
{{- define "caipe-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of most objects. A release that is called like the chart does not say it twice. */}}
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

{{/* The Service for the metrics. Its name must begin with a letter, and has no dots; those of other objects need not. */}}
{{- define "caipe-operator.metricsName" -}}
{{- $name := include "caipe-operator.fullname" . | replace "." "-" }}
{{- printf "%s%s-metrics" (regexMatch "^[0-9]" $name | ternary "op-" "") $name }}
{{- end }}

{{/* What selects the operator's pods; never changes within a release. */}}
{{- define "caipe-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "caipe-operator.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* The labels of every object. What a user gives cannot change what selects pods. */}}
{{- define "caipe-operator.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_")
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service }}
{{- merge (include "caipe-operator.commonLabels" . | fromYaml) $own | toYaml }}
{{- end }}

{{/* The labels of objects and pods alike. */}}
{{- define "caipe-operator.commonLabels" -}}
{{- $own := dict "app.kubernetes.io/component" "operator" "app.kubernetes.io/part-of" "caipe" }}
{{- merge (include "caipe-operator.selectorLabels" . | fromYaml) .Values.commonLabels $own | toYaml }}
{{- end }}

{{/* The image that the chart names. */}}
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

{{/* The Lease: one name for all releases of a namespace, for two operators that look after the same must share it. */}}
{{- define "caipe-operator.lease" -}}
caipe-operator
{{- end }}

{{/* What supervisors are given that do not say otherwise; the file of `--defaults`. */}}
{{- define "caipe-operator.defaults" -}}
{{- with .Values.defaults -}}
image: {{ default (include "caipe-operator.image" $) .image | quote }}
{{- with .imagePullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- with .imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .resources }}
# Texts: of a large number or a fraction, YAML makes one that is no quantity.
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
{{- end }}
# The pods that the NetworkPolicies of supervisors let in.
operator:
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "caipe-operator.selectorLabels" . | nindent 4 }}
{{- end }}

{{/* The labels of the pod of `helm test`: not those that select the operator's pods. */}}
{{- define "caipe-operator.testLabels" -}}
app.kubernetes.io/name: {{ include "caipe-operator.name" . | trunc 58 | trimSuffix "-" }}-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}
