{{/*
Nothing, or an error. A plain `helm template` does not contact a cluster, and knows no kind: the policy is rendered then, and
a cluster that does not support it rejects it.
*/}}
{{- define "kube-node-ready.birth.supported" -}}
{{- $apis := .Capabilities.APIVersions -}}
{{- if and ($apis.Has "v1/Pod") (not ($apis.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")) -}}
{{- $text := "gate.atBirth.enabled: true is invalid here; expected false, because this cluster does not serve %s. %s" -}}
{{- $instead := "Add the gate by other means: startupTaints of a NodePool, taints of a node group, or --register-with-taints of the kubelet" -}}
{{- fail (printf $text "MutatingAdmissionPolicy (admissionregistration.k8s.io/v1, Kubernetes 1.36)" $instead) -}}
{{- end -}}
{{- end -}}

{{/* The taint that new nodes get, the label of verified nodes, and which nodes this release verifies. */}}
{{- define "kube-node-ready.birth.gate" -}}
{{- if eq .Values.deploymentMode "controller" -}}
{{- $management := (include "kube-node-ready.controller.config" . | fromYaml).nodeManagement -}}
{{- include "kube-node-ready.birth.opens" (list "controller.config.dryRun" (include "kube-node-ready.controller.config" . | fromYaml).dryRun) -}}
{{- if not $management.taints -}}
{{- fail "gate.atBirth.enabled: true is invalid without a gate; expected false, or a taint in controller.config.nodeManagement.taints" -}}
{{- end -}}
{{- $gate := first $management.taints -}}
{{- $selector := $management.nodeSelector | default dict -}}
{{- dict "key" $gate.key "value" ($gate.value | default "") "effect" $gate.effect "label" $management.verifiedLabel.key "nodeSelector" $selector | toYaml -}}
{{- else -}}
{{- $config := include "kube-node-ready.daemonset.config" . | fromYaml -}}
{{- include "kube-node-ready.birth.opens" (list "daemonset.config.dryRun" $config.dryRun) -}}
{{- if or .Values.daemonset.nodeAffinity .Values.daemonset.affinity.nodeAffinity -}}
{{- fail "gate.atBirth.enabled: true is invalid with node affinity of the DaemonSet; expected daemonset.nodeSelector instead, because the policy cannot evaluate node affinity and would gate nodes without a pod" -}}
{{- end -}}
{{- $selector := .Values.daemonset.nodeSelector | default dict -}}
{{- dict "key" $config.taintKey "value" $config.taintValue "effect" $config.taintEffect "label" $config.verifiedLabel "nodeSelector" $selector | toYaml -}}
{{- end -}}
{{- end -}}

{{/* (list path value): an error in a dry run, which never opens a gate. */}}
{{- define "kube-node-ready.birth.opens" -}}
{{- if index . 1 -}}
{{- fail (printf "gate.atBirth.enabled: true is invalid with %s; expected false, because a dry run opens no gate" (index . 0)) -}}
{{- end -}}
{{- end -}}

{{/* Nothing, or an error: the API server would reject every new Node with such a taint. */}}
{{- define "kube-node-ready.birth.bounded" -}}
{{- if gt (len (first (splitList "/" .))) 253 -}}
{{- fail (printf "the key of the gate: %s… is invalid; expected a prefix of at most 253 characters" (trunc 40 .)) -}}
{{- end -}}
{{- end -}}
