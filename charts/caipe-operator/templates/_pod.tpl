{{/* The operator's pod. It meets the Pod Security level "restricted" with any values. */}}
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

{{/* The scheduling of the pods. */}}
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

{{/* The security context of every container of this chart. */}}
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
# The entry point of the image is the supervisor.
command: [/usr/local/bin/caipe-operator]
args:
  - run
  - --listen=[::]:8080
  - --defaults=/etc/caipe-operator/defaults.yaml
  - --leader-election={{ .Values.leaderElection.enabled }}
  - --concurrency={{ .Values.concurrency }}
  {{- with .Values.selector }}
  - {{ printf "--selector=%s" . | quote }}
  {{- end }}
  - --probe-interval-seconds={{ .Values.probeIntervalSeconds }}
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
  - name: POD_UID
    valueFrom:
      fieldRef:
        fieldPath: metadata.uid
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
# The operator is live while its loops run, also while it waits for the Lease or the CustomResourceDefinition.
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
