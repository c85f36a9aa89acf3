{{- define "quercus.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "quercus.labels" -}}
app.kubernetes.io/name: quercus
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* of . and a component */}}
{{- define "quercus.selector" -}}
app.kubernetes.io/name: quercus
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "quercus.image" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- /* what the pods of server and console share */}}
{{- define "quercus.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "quercus.locked" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* refuse values that do not go together */}}
{{- define "quercus.check" -}}
{{- if and (gt (int .Values.server.replicas) 1) (not .Values.store.postgresql) }}
{{- fail "server.replicas: several servers need a store in PostgreSQL: set store.postgresql" }}
{{- end }}
{{- if and (not .Values.tls.secret) (not .Values.tls.plaintext) }}
{{- fail "tls.secret: name the Secret with the certificate, or set tls.plaintext where a mesh or an ingress encrypts" }}
{{- end }}
{{- end }}
