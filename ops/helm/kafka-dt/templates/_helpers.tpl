{{- define "kafka-dt.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "kafka-dt.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kafka-dt.labels" -}}
{{ include "kafka-dt.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "kafka-dt.isGateway" -}}
{{- if hasPrefix "gateway" .Values.mode }}yes{{ end }}
{{- end }}

{{- /* The host that clients are given. */}}
{{- define "kafka-dt.host" -}}
{{- .Values.listener.advertisedHost | default (printf "%s.%s.svc" (include "kafka-dt.name" .) .Release.Namespace) }}
{{- end }}

{{- /* Where brokers have names instead of ports: their pattern. */}}
{{- define "kafka-dt.hostPattern" -}}
{{- $pattern := .Values.gateway.brokers.hostPattern }}
{{- if eq $pattern "service" }}{{ include "kafka-dt.name" . }}-broker-{id}.{{ .Release.Namespace }}.svc{{ else }}{{ $pattern }}{{ end }}
{{- end }}

{{- /* The ports of the brokers at the clients' Service, as JSON: broker id -> port. */}}
{{- define "kafka-dt.brokerPorts" -}}
{{- $ports := dict }}
{{- if and (include "kafka-dt.isGateway" .) (not .Values.gateway.brokers.hostPattern) }}
{{- range .Values.gateway.brokers.ids }}{{ $_ := set $ports (toString .) (add $.Values.gateway.brokers.portBase .) }}{{ end }}
{{- end }}
{{- toJson $ports }}
{{- end }}

{{- /* The secrets that this mode and these values need, as JSON: their name in `secrets` -> what they are for. */}}
{{- define "kafka-dt.needed" -}}
{{- $needed := dict }}
{{- $protocol := .Values.listener.securityProtocol }}
{{- if ne .Values.mode "gateway-upstream-tokens" }}{{ $_ := set $needed "key" "the secret key of tokens" }}{{ end }}
{{- $relays := and (include "kafka-dt.isGateway" .) (eq .Values.gateway.identity "relay") }}
{{- if and (hasPrefix "SASL" $protocol) (has "PLAIN" .Values.listener.mechanisms) (not $relays) }}{{ $_ := set $needed "users" "the users that log in by PLAIN" }}{{ end }}
{{- if hasSuffix "SSL" $protocol }}{{ $_ := set $needed "tls" "the listener's certificate" }}{{ end }}
{{- if eq $protocol "SSL" }}{{ $_ := set $needed "clientCa" "the authorities of clients' certificates" }}{{ end }}
{{- if and (include "kafka-dt.isGateway" .) (hasPrefix "SASL" .Values.gateway.securityProtocol) }}{{ $_ := set $needed "upstream" "the gateway's login in the cluster" }}{{ end }}
{{- toJson $needed }}
{{- end }}

{{- /* The secrets that are mounted, as JSON: those that are needed, and those that are given. */}}
{{- define "kafka-dt.mounted" -}}
{{- $mounted := include "kafka-dt.needed" . | fromJson }}
{{- range $each, $what := $mounted }}
{{- if not (index $.Values.secrets $each).name }}{{ fail (printf "secrets.%s.name is needed: an existing Secret with %s" $each $what) }}{{ end }}
{{- end }}
{{- if and (include "kafka-dt.isGateway" .) .Values.secrets.upstreamCa.name }}{{ $_ := set $mounted "upstreamCa" "" }}{{ end }}
{{- toJson $mounted }}
{{- end }}

{{- define "kafka-dt.secretFile" -}}
{{- printf "/etc/kafka-dt/secrets/%s/%s" .each (index .root.Values.secrets .each).item }}
{{- end }}
