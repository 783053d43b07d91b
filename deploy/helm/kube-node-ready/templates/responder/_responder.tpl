{{- define "kube-node-ready.responder.name" -}}
{{- include "kube-node-ready.named" (list . "responder") -}}
{{- end -}}

{{/* The namespace in which peers are listed. */}}
{{- define "kube-node-ready.responder.namespace" -}}
{{- if eq .Values.deploymentMode "controller" -}}
{{- (include "kube-node-ready.controller.config.whole" . | fromYaml).worker.namespace -}}
{{- else -}}
{{- .Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* (list . component): what selects the pods of this component, in one line. */}}
{{- define "kube-node-ready.selector.line" -}}
{{- $labels := list -}}
{{- range $key, $value := include "kube-node-ready.selector" . | fromYaml -}}
{{- $labels = append $labels (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- join "," $labels -}}
{{- end -}}

{{/*
Not empty if there are responders: the matrix is on, its peers are not named by `connectivitySelector`, and no other pods
of the release are on every node anyway.
*/}}
{{- define "kube-node-ready.responder.wanted" -}}
{{- $responders := include "kube-node-ready.selector.line" (list . "responder") -}}
{{- if eq .Values.deploymentMode "controller" -}}
{{- $worker := (include "kube-node-ready.controller.config.whole" . | fromYaml).worker -}}
{{- if and $worker.connectivityMatrix (eq $worker.connectivitySelector $responders) }}true{{ end -}}
{{- else -}}
{{- $matrix := (include "kube-node-ready.daemonset.config" . | fromYaml).enableConnectivityMatrix -}}
{{- $checks := include "kube-node-ready.daemonset.checks" . | fromJson -}}
{{- if and $matrix (eq (get $checks "connectivitySelector" | toString) $responders) }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* The port on which peers are tried. */}}
{{- define "kube-node-ready.responder.port" -}}
{{- if eq .Values.deploymentMode "controller" -}}
{{- $config := include "kube-node-ready.controller.config.whole" . | fromYaml -}}
{{- $config.worker.connectivityPort | default $config.health.port | int -}}
{{- else -}}
{{- $config := include "kube-node-ready.daemonset.config" . | fromYaml -}}
{{- .Values.worker.config.connectivityPort | default $config.metricsPort | int -}}
{{- end -}}
{{- end -}}

{{/* For NOTES: which peers the connectivity matrix has, and whether they are enough. */}}
{{- define "kube-node-ready.responder.notes" -}}
{{- if include "kube-node-ready.responder.wanted" . }}

CONNECTIVITY MATRIX: a node must reach most of a sample of the pods of DaemonSet {{ include "kube-node-ready.responder.name" . }},
one on each node without the gate. Until two other nodes have one, verifications report "not enough peers: N of 2",
and the matrix holds no node:
  kubectl get pods -n {{ include "kube-node-ready.responder.namespace" . }} -l app.kubernetes.io/component=responder -o wide
{{- else if eq .Values.deploymentMode "controller" }}
{{- $worker := (include "kube-node-ready.controller.config.whole" . | fromYaml).worker }}
{{- $replicas := ne $worker.namespace .Release.Namespace | ternary 0 (int .Values.controller.replicas) }}
{{- $own := eq (toString $worker.connectivitySelector) "app=kube-node-ready,component!=worker" }}
{{- if and $worker.connectivityMatrix $own (lt $replicas 3) }}

CONNECTIVITY MATRIX: not enough peers: {{ min $replicas 1 }} of 2{{ if eq $replicas 2 }} on the nodes that run the controller{{ end }}, so it holds no node there. The only peers in namespace
{{ $worker.namespace }} are the controller's own pods. Set responder.enabled=true, or a connectivitySelector that finds pods on many nodes.
{{- end }}
{{- else if and (include "kube-node-ready.daemonset.config" . | fromYaml).enableConnectivityMatrix (eq .Values.daemonset.mode "once") (not (hasKey .Values.worker.config "connectivitySelector")) }}

CONNECTIVITY MATRIX: not enough peers: 0 of 2 once all nodes are verified, so it holds no node then: the DaemonSet's pods
leave verified nodes. Set responder.enabled=true, or a connectivitySelector that finds pods on many nodes.
{{- end }}
{{- end -}}
