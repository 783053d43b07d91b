{{/*
The alerts of either mode, from a file of the chart. A dict of:
  root, component ("controller"), name, served (whether there are metrics), file, words (what its %WORDS% stand for),
  and mode, the DaemonSet's: an alert with `mode:` is for that one only.
*/}}
{{- define "kube-node-ready.prometheusRule" -}}
{{- $root := .root -}}
{{- $place := printf "%s.metrics.prometheusRule" .component -}}
{{- $rule := (get $root.Values .component).metrics.prometheusRule -}}
{{- $mode := .mode | default "" -}}
{{- if not .served -}}
{{- fail (printf "%s is enabled, but metrics are not; enable them, or disable the alerts" $place) -}}
{{- end -}}
{{- $text := $root.Files.Get .file | replace "%NAMESPACE%" $root.Release.Namespace -}}
{{- range $word, $meaning := .words -}}
{{- $text = $text | replace (printf "%%%s%%" $word) (toString $meaning) -}}
{{- end -}}
{{- $known := list -}}
{{- $wanted := list -}}
{{- range (fromYaml $text).alerts -}}
{{- $known = append $known .alert -}}
{{- if and (not (has .alert $rule.disabled)) (eq (.mode | default $mode) $mode) -}}
{{- $wanted = append $wanted (set (omit . "mode") "labels" (merge .labels $rule.alertLabels)) -}}
{{- end -}}
{{- end -}}
{{- range $rule.disabled -}}
{{- if not (has . $known) -}}
{{- fail (printf "%s.disabled: \"%s\" is invalid; expected one of %s" $place . (join ", " $known)) -}}
{{- end -}}
{{- end -}}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ .name }}
  namespace: {{ $rule.namespace | default $root.Release.Namespace | quote }}
  labels:
    {{- include "kube-node-ready.labels.more" (list $root .component $rule.labels) | nindent 4 }}
  {{- include "kube-node-ready.annotations" (list $root $rule.annotations) }}
spec:
  groups:
    - name: kube-node-ready
      rules:
        {{- toYaml (concat $wanted $rule.additionalRules) | nindent 8 }}
{{- end -}}

{{/* (list . "controller" "dashboard.json" key): a dashboard for Grafana's sidecar, which keeps it under that key. */}}
{{- define "kube-node-ready.dashboard" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $dashboard := (get $root.Values $component).metrics.grafanaDashboard -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "kube-node-ready.named" (list $root "dashboard") }}
  namespace: {{ $dashboard.namespace | default $root.Release.Namespace | quote }}
  labels:
    {{- include "kube-node-ready.labels.more" (list $root $component $dashboard.labels) | nindent 4 }}
  {{- include "kube-node-ready.annotations" (list $root $dashboard.annotations) }}
data:
  {{ index . 3 }}: |
    {{- $root.Files.Get (index . 2) | nindent 4 }}
{{- end -}}
