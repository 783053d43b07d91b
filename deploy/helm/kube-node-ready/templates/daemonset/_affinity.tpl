{{/*
The DaemonSet's affinity. In mode `once`, verified nodes are excluded, so that a pod is removed when its node has the label,
and starts again when the label is removed. Terms are alternatives, so each of them must exclude the label.
*/}}
{{- define "kube-node-ready.daemonset.affinity" -}}
{{- $affinity := deepCopy .Values.daemonset.affinity -}}
{{- with .Values.daemonset.nodeAffinity -}}
{{- if $affinity.nodeAffinity -}}
{{- fail "daemonset.nodeAffinity cannot be combined with daemonset.affinity.nodeAffinity; set one of them" -}}
{{- end -}}
{{- $_ := set $affinity "nodeAffinity" (deepCopy .) -}}
{{- end -}}
{{- if eq .Values.daemonset.mode "once" -}}
{{- $config := include "kube-node-ready.daemonset.config" . | fromYaml -}}
{{- $unverified := dict "key" $config.verifiedLabel "operator" "NotIn" "values" (list $config.verifiedLabelValue) -}}
{{- $node := $affinity.nodeAffinity | default dict -}}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict -}}
{{- $terms := list -}}
{{- range $required.nodeSelectorTerms | default (list dict) -}}
{{- $terms = append $terms (set . "matchExpressions" (append (.matchExpressions | default list) $unverified | uniq)) -}}
{{- end -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
{{- $_ := set $affinity "nodeAffinity" $node -}}
{{- end -}}
{{- with $affinity }}{{ toYaml . }}{{ end -}}
{{- end -}}
