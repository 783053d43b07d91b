{{/* The DaemonSet's environment. The names are those that its settings have always had. */}}
{{- define "kube-node-ready.daemonset.variables" -}}
{{- $config := include "kube-node-ready.daemonset.config" . | fromYaml -}}
MODE: {{ .Values.daemonset.mode | quote }}
INITIAL_TIMEOUT: {{ $config.initialTimeout | quote }}
CHECK_TIMEOUT: {{ $config.checkTimeout | quote }}
MAX_RETRIES: {{ int $config.maxRetries | quote }}
RETRY_BACKOFF: {{ $config.retryBackoff | quote }}
DNS_TEST_DOMAINS: {{ join "," $config.dnsTestDomains | quote }}
CLUSTER_DNS_IP: {{ $config.clusterDNSIP | quote }}
TAINT_KEY: {{ $config.taintKey | quote }}
TAINT_VALUE: {{ $config.taintValue | quote }}
TAINT_EFFECT: {{ $config.taintEffect | quote }}
VERIFIED_LABEL: {{ $config.verifiedLabel | quote }}
VERIFIED_LABEL_VALUE: {{ $config.verifiedLabelValue | quote }}
DELETE_FAILED_NODE: {{ $config.deleteFailedNode | quote }}
ENABLE_CONNECTIVITY_MATRIX: {{ $config.enableConnectivityMatrix | quote }}
ENABLE_METRICS: {{ $config.enableMetrics | quote }}
METRICS_PORT: {{ int $config.metricsPort | quote }}
LOG_LEVEL: {{ $config.logLevel | quote }}
LOG_FORMAT: {{ $config.logFormat | quote }}
DRY_RUN: {{ $config.dryRun | quote }}
{{- if eq .Values.daemonset.mode "continuous" }}
CHECK_INTERVAL: {{ $config.checkInterval | quote }}
FAILURE_THRESHOLD: {{ int $config.failureThreshold | quote }}
{{- end }}
{{- with include "kube-node-ready.daemonset.checks" . }}
{{- if ne . "{}" }}
KUBE_NODE_READY_WORKER_CONFIG: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}
