{{/*
Something if there is to be a policy, nothing if not. A plain `helm template` asks no cluster: Helm then has a list of API
versions of its own, without a single kind. To leave the policies out there would install the chart without them, and
nobody would notice; so the rendering fails.
*/}}
{{- define "kube-node-ready.admission.wanted" -}}
{{- $wanted := .Values.admissionPolicy.enabled -}}
{{- if eq (toString $wanted) "auto" -}}
{{- $policies := "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" -}}
{{- $wanted = .Capabilities.APIVersions.Has $policies -}}
{{- if not (or $wanted (.Capabilities.APIVersions.Has "v1/Pod")) -}}
{{- fail (printf "admissionPolicy.enabled: \"auto\" is invalid without a cluster that Helm can ask; expected true (Kubernetes 1.30 and later) or false, or `--api-versions=%s`" $policies) -}}
{{- end -}}
{{- end -}}
{{- if $wanted }}true{{ end -}}
{{- end -}}

{{/*
(list "object" "spec.taints" "[]"): that part of the object, or what stands for its absence. As `dyn`: the API server's
type check knows a Node's fields, and fields are not keys to it.
*/}}
{{- define "kube-node-ready.admission.part" -}}
{{- $object := index . 0 -}}
{{- $path := splitList "." (index . 1) -}}
{{- $there := list -}}
{{- $at := $object -}}
{{- range $path -}}
{{- $at = printf "%s.%s" $at . -}}
{{- $there = append $there (printf "has(%s)" $at) -}}
{{- end -}}
{{- printf "%s ? dyn(%s) : dyn(%s)" (join " && " $there) $at (index . 2) -}}
{{- end -}}

{{/* (list "labels" key): of this mapping, no other key comes, goes or changes. */}}
{{- define "kube-node-ready.admission.onlyKey" -}}
{{- $now := printf "variables.%s" (index . 0) -}}
{{- $before := printf "variables.%sBefore" (index . 0) -}}
{{- $may := printf "key == '%s'" (index . 1) -}}
{{- printf "%s.all(key, %s || (key in %s && %s[key] == %s[key]))" $now $may $before $before $now }}
        && {{ printf "%s.all(key, %s || key in %s)" $before $may $now -}}
{{- end -}}

{{/* (list "taints" "key" name): of this list, no item of another name comes, goes or changes. */}}
{{- define "kube-node-ready.admission.onlyItem" -}}
{{- $others := printf "filter(item, item.%s != '%s')" (index . 1) (index . 2) -}}
{{- printf "variables.%s.%s == variables.%sBefore.%s" (index . 0) $others (index . 0) $others -}}
{{- end -}}

{{/* (list . component name): the binding that puts the policy of this name into effect. */}}
{{- define "kube-node-ready.admission.binding" -}}
{{- $root := index . 0 -}}
{{- $name := index . 2 -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "kube-node-ready.labels" (list $root (index . 1)) | nindent 4 }}
  {{- include "kube-node-ready.annotations" (list $root) }}
spec:
  policyName: {{ $name }}
  validationActions: [Deny]
{{- end -}}

{{/* The names of the policies. Cluster-scoped, as the ClusterRoles are. */}}
{{- define "kube-node-ready.admission.workers" -}}
{{- include "kube-node-ready.named" (list . "workers") -}}
{{- end -}}

{{/* "object" or "oldObject": whether this pod is a worker by its name or its labels. */}}
{{- define "kube-node-ready.admission.isWorker" -}}
{{- $labels := printf "%s.metadata.?labels" . -}}
{{- printf "%s.metadata.name.startsWith('node-ready-worker-')" . }}
        || ({{ $labels }}['app'].orValue('') == 'kube-node-ready' && {{ $labels }}['component'].orValue('') == 'worker')
{{- end -}}
