{{/* Parts that several templates share. `root` is the chart's own context. */}}

{{- define "touchstone.ports" -}}
http: 8080
scheduler: 8051
results: 8052
evaluator: 8053
replica: 8054
metrics: 9464
replicaMetrics: 9465
nats: 4222
monitor: 8222
routes: 6222
{{- end }}

{{/* Which pods a selector finds: of {root, component, group}, the last for evaluators alone. */}}
{{- define "touchstone.selector" -}}
app.kubernetes.io/name: touchstone
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- with .group }}
touchstone/group: {{ . }}
{{- end }}
{{- end }}

{{- define "touchstone.labels" -}}
{{ include "touchstone.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* Name and labels of an object of {root, component, group}. */}}
{{- define "touchstone.metadata" -}}
name: {{ include "touchstone.name" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "touchstone.labels" . | nindent 2 }}
{{- end }}

{{- define "touchstone.name" -}}
{{ .root.Release.Name }}-{{ .component }}{{ with .group }}-{{ . }}{{ end }}
{{- end }}

{{- define "touchstone.image" -}}
{{- $image := .image -}}
image: {{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .root.Chart.AppVersion }}{{ end }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}

{{/* What every pod has. Without the links to services: they would set variables such as TOUCHSTONE_RESULTS_PORT. */}}
{{- define "touchstone.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ .spread | default "ScheduleAnyway" }}
    labelSelector:
      matchLabels:
        {{- include "touchstone.selector" . | nindent 8 }}
{{- end }}

{{- define "touchstone.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Each node of NATS by the name that it keeps: `before` and `after` it in a URL. */}}
{{- define "touchstone.nodes" -}}
{{- $urls := list -}}
{{- range $n := until (int .root.Values.nats.replicas) -}}
{{- $urls = append $urls (printf "%s%s-nats-%d.%s-nats.%s.svc:%v" $.before $.root.Release.Name $n $.root.Release.Name $.root.Release.Namespace $.port) -}}
{{- end -}}
{{- join "," $urls -}}
{{- end }}

{{/* Variables of every service; `own` are the service's values. */}}
{{- define "touchstone.env" -}}
{{- $values := .root.Values -}}
{{- $ports := include "touchstone.ports" . | fromYaml -}}
{{ include "touchstone.natsEnv" . }}
- name: TOUCHSTONE_AUTH
  value: token
- name: TOUCHSTONE_SERVICE_TOKEN
  valueFrom: {secretKeyRef: {name: {{ $values.secrets.serviceToken.name }}, key: {{ $values.secrets.serviceToken.key }}}}
- name: TOUCHSTONE_METRICS_LISTEN
  value: {{ printf "0.0.0.0:%v" (ternary $ports.replicaMetrics $ports.metrics (eq .component "replica")) | quote }}
{{- if $values.tls.enabled }}
- name: TOUCHSTONE_TLS_CA
  value: /etc/touchstone/tls/ca.crt
{{- if ne .component "gateway" }}
- name: TOUCHSTONE_TLS_CERT
  value: /etc/touchstone/tls/tls.crt
- name: TOUCHSTONE_TLS_KEY
  value: /etc/touchstone/tls/tls.key
{{- end }}
{{- if $values.tls.clientCertificates }}
{{- if ne .component "gateway" }}
- name: TOUCHSTONE_TLS_CLIENT_CA
  value: /etc/touchstone/tls/ca.crt
{{- end }}
- name: TOUCHSTONE_TLS_CLIENT_CERT
  value: /etc/touchstone/tls/tls.crt
- name: TOUCHSTONE_TLS_CLIENT_KEY
  value: /etc/touchstone/tls/tls.key
{{- end }}
{{- end }}
{{- if has .component (list "scheduler" "results" "replica") }}
- name: TOUCHSTONE_READS
  value: {{ $values.reads }}
{{- end }}
{{- with $values.traces.url }}
- name: TOUCHSTONE_TRACES_URL
  value: {{ . | quote }}
{{- end }}
{{- range $name, $value := merge (dict) $values.settings .own.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range .own.fromSecrets }}
- name: {{ .variable }}
  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}
{{- end }}
{{- end }}

{{/* Variables of what connects to NATS: with a token in the URL, or with the seed of an nkey. */}}
{{- define "touchstone.natsEnv" -}}
{{- $values := .root.Values -}}
{{- $ports := include "touchstone.ports" . | fromYaml -}}
{{- $before := ternary "tls://" "nats://" $values.tls.enabled -}}
- name: HOME
  value: /tmp
- name: TOUCHSTONE_LOG_FORMAT
  value: {{ $values.logFormat }}
{{- if $values.nats.users }}
- name: TOUCHSTONE_NATS_NKEY_SEED_FILE
  value: /etc/touchstone/nats/seed
{{- else }}
{{- $before = printf "%s$(NATS_TOKEN)@" $before }}
{{ include "touchstone.natsToken" . }}
{{- end }}
- name: TOUCHSTONE_NATS_URL
  value: {{ include "touchstone.nodes" (dict "root" .root "before" $before "port" $ports.nats) | quote }}
- name: TOUCHSTONE_NATS_MONITOR_URL
  value: {{ include "touchstone.nodes" (dict "root" .root "before" "http://" "port" $ports.monitor) | quote }}
- name: TOUCHSTONE_NATS_REPLICAS
  value: {{ min 3 $values.nats.replicas | quote }}
{{- if $values.tls.enabled }}
- name: TOUCHSTONE_NATS_TLS_CA
  value: /etc/touchstone/tls/ca.crt
{{- if $values.tls.clientCertificates }}
- name: TOUCHSTONE_NATS_TLS_CERT
  value: /etc/touchstone/tls/tls.crt
- name: TOUCHSTONE_NATS_TLS_KEY
  value: /etc/touchstone/tls/tls.key
{{- end }}
{{- end }}
{{- end }}

{{- define "touchstone.natsToken" -}}
- name: NATS_TOKEN
  valueFrom: {secretKeyRef: {name: {{ .root.Values.secrets.natsToken.name }}, key: {{ .root.Values.secrets.natsToken.key }}}}
{{- end }}

{{/* Where services find each other. */}}
{{- define "touchstone.schedulerAddress" -}}
dns:///{{ .root.Release.Name }}-scheduler.{{ .root.Release.Namespace }}.svc:{{ (include "touchstone.ports" . | fromYaml).scheduler }}
{{- end }}

{{- define "touchstone.resultsAddress" -}}
{{ .root.Release.Name }}-results.{{ .root.Release.Namespace }}.svc:{{ (include "touchstone.ports" . | fromYaml).results }}
{{- end }}

{{- define "touchstone.replicaAddress" -}}
{{ .root.Release.Name }}-replica.{{ .root.Release.Namespace }}.svc:{{ (include "touchstone.ports" . | fromYaml).replica }}
{{- end }}

{{/* Volumes of every service: room for temporary files, certificates, and the seed of an nkey. */}}
{{- define "touchstone.volumes" -}}
- name: tmp
  emptyDir: {}
{{- if .root.Values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ index .root.Values.tls.secrets .component }}
    defaultMode: 0440
{{- end }}
{{- if .root.Values.nats.users }}
- name: seed
  secret:
    secretName: {{ .root.Values.secrets.natsKeys }}
    # Its own, and nobody else's.
    items: [{key: {{ .component }}.seed, path: seed}]
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "touchstone.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.tls.enabled }}
- {name: tls, mountPath: /etc/touchstone/tls, readOnly: true}
{{- end }}
{{- if .root.Values.nats.users }}
- {name: seed, mountPath: /etc/touchstone/nats, readOnly: true}
{{- end }}
{{- end }}

{{/*
Probes of a service with gRPC. It is alive while its event loop answers the request for metrics: its health also says
when NATS is away, where a restart does not help. Kubernetes itself cannot ask for the health over TLS.
*/}}
{{- define "touchstone.probes" -}}
startupProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 10
  failureThreshold: {{ .startTries | default 60 }}
livenessProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 4
readinessProbe:
  {{- if .root.Values.tls.enabled }}
  exec: {command: [python, -m, deploy.probe, "localhost:{{ .port }}"]}
  periodSeconds: 15
  {{- else }}
  grpc: {port: {{ .port }}}
  periodSeconds: 5
  {{- end }}
  timeoutSeconds: 6
  failureThreshold: 3
{{- end }}
