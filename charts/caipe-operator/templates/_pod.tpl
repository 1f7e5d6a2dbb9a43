{{/* The operator's pod. It meets the Pod Security level "restricted", whatever the values say. */}}
{{- define "caipe-operator.pod" -}}
serviceAccountName: {{ include "caipe-operator.serviceAccountName" . | quote }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: operator
    {{- include "caipe-operator.container" . | nindent 4 }}
volumes:
  - name: defaults
    configMap:
      name: {{ include "caipe-operator.fullname" . }}-defaults
{{- include "caipe-operator.placement" . }}
{{- end }}

{{/* Where the pods go. */}}
{{- define "caipe-operator.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- if .Values.topologySpreadConstraints }}
  {{- toYaml .Values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "caipe-operator.selectorLabels" $ | nindent 8 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The security of every container of ours. */}}
{{- define "caipe-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The operator's container. */}}
{{- define "caipe-operator.container" -}}
image: {{ include "caipe-operator.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
# The image starts the supervisor unless told otherwise.
command: [/usr/local/bin/caipe-operator]
args:
  - run
  - --listen=0.0.0.0:8080
  - --defaults=/etc/caipe-operator/defaults.yaml
  - --leader-election={{ .Values.leaderElection.enabled }}
  - --concurrency={{ .Values.concurrency }}
  - --log-format={{ .Values.log.format }}
  - --log-level={{ .Values.log.level }}
  {{- range .Values.watchNamespaces }}
  - --watch-namespace={{ . }}
  {{- end }}
env:
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - name: metrics
    containerPort: 8080
# Alive while its loops turn; waiting for the Lease or for the CustomResourceDefinition is no fault.
livenessProbe:
  httpGet:
    path: /healthz
    port: metrics
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 5
  timeoutSeconds: 3
startupProbe:
  httpGet:
    path: /healthz
    port: metrics
  periodSeconds: 1
  timeoutSeconds: 3
  failureThreshold: 60
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "caipe-operator.containerSecurity" . | nindent 2 }}
volumeMounts:
  - name: defaults
    mountPath: /etc/caipe-operator
    readOnly: true
{{- end }}
