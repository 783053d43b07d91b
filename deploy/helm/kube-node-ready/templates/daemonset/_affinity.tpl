{{/*
The DaemonSet's affinity. In `once` mode verified nodes are ruled out, so that a pod goes when its node has the label,
and comes back when somebody takes the label off. Terms are alternatives, so each of them must rule the label out.
*/}}
{{- define "kube-node-ready.daemonset.affinity" -}}
{{- $affinity := deepCopy .Values.daemonset.affinity -}}
{{- if eq .Values.daemonset.mode "once" -}}
{{- $config := include "kube-node-ready.daemonset.config" . | fromYaml -}}
{{- $unverified := dict "key" $config.verifiedLabel "operator" "NotIn" "values" (list $config.verifiedLabelValue) -}}
{{- $node := $affinity.nodeAffinity | default dict -}}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict -}}
{{- $terms := list -}}
{{- range $required.nodeSelectorTerms | default (list dict) -}}
{{- $terms = append $terms (set . "matchExpressions" (append (.matchExpressions | default list) $unverified)) -}}
{{- end -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
{{- $_ := set $affinity "nodeAffinity" $node -}}
{{- end -}}
{{- with $affinity }}{{ toYaml . }}{{ end -}}
{{- end -}}
