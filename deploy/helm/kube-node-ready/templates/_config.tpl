{{/* The controller's configuration file. A ConfigMap of the user's own takes precedence for the checks. */}}
{{- define "kube-node-ready.controller.config" -}}
{{- $config := include "kube-node-ready.controller.config.whole" . | fromYaml -}}
{{- if $config.worker.configMapName -}}
{{- range list
  "dnsTestDomains" "clusterDnsIp" "checkTimeoutSeconds" "networkTargets" "services" "dnsService"
  "payload" "payloadPath" "clock" "maxClockSkewSeconds"
  "connectivityMatrix" "connectivitySelector" "connectivitySample" "connectivityPort"
  "dnsSamples" "dnsSamplesAfterFailure" "maxDnsLossPercent"
-}}
{{- $_ := unset $config.worker . -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
The same with the checks in any case. Laid over one another, the strongest last: controller.config, worker.config,
config. What is still empty then, and known to the chart, is filled in. No `merge`: it takes false, 0 and "" for absent.
*/}}
{{- define "kube-node-ready.controller.config.whole" -}}
{{- $config := deepCopy .Values.controller.config -}}
{{- $worker := $config.worker -}}
{{- range $key, $value := include "kube-node-ready.checks" . | fromYaml -}}
{{- $_ := set $worker $key $value -}}
{{- end -}}
{{- include "kube-node-ready.controller.config.short" (list . $config) -}}
{{- $unset := eq (toString $worker.connectivitySelector) "app=kube-node-ready,component!=worker" -}}
{{- if and $worker.connectivityMatrix $unset .Values.responder.enabled -}}
{{- $_ := set $worker "connectivitySelector" (include "kube-node-ready.selector.line" (list . "responder")) -}}
{{- end -}}
{{- $_ := set $worker "image" (include "kube-node-ready.image.parts" (list . $worker.image) | fromYaml) -}}
{{- $_ := set $worker "namespace" ($worker.namespace | default .Values.worker.namespace | default .Release.Namespace) -}}
{{- $_ := set $worker "serviceAccountName" (include "kube-node-ready.worker.account" .) -}}
{{- $_ := set $worker "priorityClassName" ($worker.priorityClassName | default .Values.priorityClassName) -}}
{{- if not $worker.imagePullSecrets -}}
{{- $_ := set $worker "imagePullSecrets" (include "kube-node-ready.pullSecrets" . | fromYamlArray) -}}
{{- end -}}
{{- range $key, $value := .Values.controller.leaderElection -}}
{{- if not (hasKey $config.leaderElection $key) }}{{ $_ := set $config.leaderElection $key $value }}{{ end -}}
{{- end -}}
{{- $lease := $config.leaderElection -}}
{{- $_ := set $lease "id" ($lease.id | default (include "kube-node-ready.controller.name" .)) -}}
{{- $_ := set $lease "namespace" ($lease.namespace | default .Release.Namespace) -}}
{{- range $key, $value := pick .Values.controller.metrics "enabled" "port" -}}
{{- if not (hasKey $config.metrics $key) }}{{ $_ := set $config.metrics $key $value }}{{ end -}}
{{- end -}}
{{- if not (hasKey $config.health "port") -}}
{{- $_ := set $config.health "port" .Values.controller.health.port -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* worker.config, without the keys that were a worker's own when it retried by itself. */}}
{{- define "kube-node-ready.checks" -}}
{{- omit .Values.worker.config "maxRetries" "retryBackoff" "initialCheckTimeoutSeconds" "logging" "dryRun" | toYaml -}}
{{- end -}}

{{/* (list . config): the keys of `config:`, put where the controller looks for them. */}}
{{- define "kube-node-ready.controller.config.short" -}}
{{- $root := index . 0 -}}
{{- $config := index . 1 -}}
{{- $short := $root.Values.config -}}
{{- $seconds := dict
  "initialTimeout" (list $config.worker "timeoutSeconds")
  "checkTimeout" (list $config.worker "checkTimeoutSeconds")
  "checkInterval" (list $config.reconciliation "reverifyIntervalSeconds")
-}}
{{- $places := dict
  "dnsTestDomains" (list $config.worker "dnsTestDomains")
  "clusterDNSIP" (list $config.worker "clusterDnsIp")
  "enableConnectivityMatrix" (list $config.worker "connectivityMatrix")
  "failureThreshold" (list $config.reconciliation "reverifyFailureThreshold")
  "maxRetries" (list $config.reconciliation "maxRetries")
  "retryBackoff" (list $config.reconciliation "retryBackoff")
  "verifiedLabel" (list $config.nodeManagement.verifiedLabel "key")
  "verifiedLabelValue" (list $config.nodeManagement.verifiedLabel "value")
  "deleteFailedNode" (list $config.nodeManagement "deleteFailedNodes")
  "enableMetrics" (list $config.metrics "enabled")
  "metricsPort" (list $config.metrics "port")
  "logLevel" (list $config.logging "level")
  "logFormat" (list $config.logging "format")
  "dryRun" (list $config "dryRun")
-}}
{{- $taints := dict "taintKey" "key" "taintValue" "value" "taintEffect" "effect" -}}
{{- with $short.initialTimeout }}{{ include "kube-node-ready.bounded" (list "config.initialTimeout" . 10) }}{{ end -}}
{{- with $short.checkTimeout }}{{ include "kube-node-ready.bounded" (list "config.checkTimeout" . 1) }}{{ end -}}
{{- with $short.checkInterval }}{{ include "kube-node-ready.bounded" (list "config.checkInterval" . 10) }}{{ end -}}
{{- if and (hasKey $short "maxRetries") (lt (int $short.maxRetries) 1) -}}
{{- fail "config.maxRetries: 0 is invalid with deploymentMode=controller; expected 1 or more" -}}
{{- end -}}
{{- range $key, $value := $short -}}
{{- if hasKey $places $key -}}
{{- $_ := set (index $places $key 0) (index $places $key 1) $value -}}
{{- else if hasKey $seconds $key -}}
{{- $_ := set (index $seconds $key 0) (index $seconds $key 1) (include "kube-node-ready.seconds" $value | int) -}}
{{- else if hasKey $taints $key -}}
{{- $usual := dict "key" "node-ready/unverified" "value" "true" "effect" "NoSchedule" -}}
{{- $gates := $config.nodeManagement.taints | default (list $usual) -}}
{{- $_ := set (first $gates) (get $taints $key) $value -}}
{{- $_ := set $config.nodeManagement "taints" $gates -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The keys of the gates' taints, which every pod that must run on a gated node tolerates. */}}
{{- define "kube-node-ready.gates" -}}
{{- range .nodeManagement.taints }}
- {{ .key | quote }}
{{- end }}
{{- end -}}

{{/* The DaemonSet's settings: daemonset.config, worker.config, config; the strongest last. */}}
{{- define "kube-node-ready.daemonset.config" -}}
{{- $config := deepCopy .Values.daemonset.config -}}
{{- with .Values.worker.config -}}
{{- if hasKey . "dnsTestDomains" }}{{ $_ := set $config "dnsTestDomains" .dnsTestDomains }}{{ end -}}
{{- if hasKey . "clusterDnsIp" }}{{ $_ := set $config "clusterDNSIP" .clusterDnsIp }}{{ end -}}
{{- if hasKey . "checkTimeoutSeconds" -}}
{{- $_ := set $config "checkTimeout" (printf "%vs" .checkTimeoutSeconds) -}}
{{- end -}}
{{- if hasKey . "connectivityMatrix" }}{{ $_ := set $config "enableConnectivityMatrix" .connectivityMatrix }}{{ end -}}
{{- end -}}
{{- range $key, $value := .Values.config }}{{ $_ := set $config $key $value }}{{ end -}}
{{- if $config.deleteFailedNode -}}
{{- fail "deleteFailedNode: true is invalid with deploymentMode=daemonset; expected false, because a pod has no information about other nodes" -}}
{{- end -}}
{{- range list "initialTimeout" "checkInterval" -}}
{{- include "kube-node-ready.bounded" (list . (get $config .) 1) -}}
{{- end -}}
{{- $all := include "kube-node-ready.seconds" $config.initialTimeout | float64 -}}
{{- if gt (include "kube-node-ready.seconds" $config.checkTimeout | float64) $all -}}
{{- $text := "checkTimeout: %s is invalid; expected at most initialTimeout, %s" -}}
{{- fail (printf $text $config.checkTimeout $config.initialTimeout) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
Settings of the checks that the DaemonSet has no variable for. Peers are its own pods where they stay, and
responders where they leave.
*/}}
{{- define "kube-node-ready.daemonset.checks" -}}
{{- $checks := include "kube-node-ready.checks" . | fromYaml -}}
{{- $checks = omit $checks "dnsTestDomains" "clusterDnsIp" "checkTimeoutSeconds" "connectivityMatrix" -}}
{{- $matrix := (include "kube-node-ready.daemonset.config" . | fromYaml).enableConnectivityMatrix -}}
{{- if and $matrix (not (hasKey $checks "connectivitySelector")) -}}
{{- $leaves := and (eq .Values.daemonset.mode "once") .Values.responder.enabled -}}
{{- $peers := $leaves | ternary "responder" "daemonset" -}}
{{- $_ := set $checks "connectivitySelector" (include "kube-node-ready.selector.line" (list . $peers)) -}}
{{- end -}}
{{- toJson $checks -}}
{{- end -}}

{{/* Services that the DaemonSet looks at, as RBAC needs them. The defaults are the operator's own. */}}
{{- define "kube-node-ready.daemonset.services" -}}
{{- $checks := .Values.worker.config -}}
{{- $services := list "default/kubernetes" "kube-system/kube-dns" -}}
{{- $dns := "kube-system/kube-dns" -}}
{{- if hasKey $checks "services" }}{{ $services = $checks.services }}{{ end -}}
{{- if hasKey $checks "dnsService" }}{{ $dns = $checks.dnsService }}{{ end -}}
{{- include "kube-node-ready.services" (list $services $dns) -}}
{{- end -}}
