{{/*
Something if there is to be a policy, nothing if not. A plain `helm template` asks no cluster: Helm then has a list of API
versions of its own, without a single kind. Leaving the policies out there would silently install the chart without
them, so rendering fails.
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

{{/* (list "labels" key …): of this mapping, no other key comes, goes or changes. */}}
{{- define "kube-node-ready.admission.onlyKeys" -}}
{{- $now := printf "variables.%s" (index . 0) -}}
{{- $before := printf "variables.%sBefore" (index . 0) -}}
{{- $may := printf "key in %s" (rest . | toJson) -}}
{{- printf "%s.all(key, %s || (key in %s && %s[key] == %s[key]))" $now $may $before $before $now }}
        && {{ printf "%s.all(key, %s || key in %s)" $before $may $now -}}
{{- end -}}

{{/* (list "taints" "item.key in [\"a\"]"): of this list, no item that is not described so comes, goes or changes. */}}
{{- define "kube-node-ready.admission.onlyItems" -}}
{{- $others := printf "filter(item, !(%s))" (index . 1) -}}
{{- printf "variables.%s.%s == variables.%sBefore.%s" (index . 0) $others (index . 0) $others -}}
{{- end -}}

{{/* Maps and lists of a Node: variables of a policy with these parts as they are now and as they were before. */}}
{{- define "kube-node-ready.admission.nodeParts" -}}
{{- $maps := list "metadata.labels" "metadata.annotations" "spec" "status" }}
{{- $lists := list "metadata.finalizers" "metadata.ownerReferences" "spec.taints" "status.conditions" }}
{{- range $part := concat $maps $lists }}
{{- $word := splitList "." $part | last }}
{{- $empty := has $part $lists | ternary "[]" "{}" }}
{{- range $object, $name := dict "object" $word "oldObject" (printf "%sBefore" $word) }}
- name: {{ $name }}
  expression: '{{ include "kube-node-ready.admission.part" (list $object $part $empty) }}'
{{- end }}
{{- end }}
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

{{- define "kube-node-ready.admission.pods" -}}
{{- include "kube-node-ready.named" (list . "controller-pods") -}}
{{- end -}}

{{- define "kube-node-ready.admission.nodes" -}}
{{- include "kube-node-ready.named" (list . "controller-nodes") -}}
{{- end -}}

{{- define "kube-node-ready.admission.state" -}}
{{- include "kube-node-ready.named" (list . "controller-state") -}}
{{- end -}}

{{/* Something if the controller's own writes are to be limited. */}}
{{- define "kube-node-ready.admission.restricts" -}}
{{- if and (eq .Values.deploymentMode "controller") .Values.admissionPolicy.restrictController -}}
{{- include "kube-node-ready.admission.wanted" . -}}
{{- end -}}
{{- end -}}

{{/*
(list . name): the beginning of a policy about what the controller writes. Requests of other accounts never get beyond
the match condition, which cannot fail, so `failurePolicy: Fail` concerns the controller alone.
*/}}
{{- define "kube-node-ready.admission.ofController" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ index . 1 }}
  labels:
    {{- include "kube-node-ready.labels" (list (index . 0) "controller") | nindent 4 }}
  {{- include "kube-node-ready.annotations" (list (index . 0)) }}
spec:
  failurePolicy: Fail
  matchConditions:
    - name: is-the-controller
      expression: request.userInfo.username == {{ include "kube-node-ready.controller.username" (index . 0) | quote }}
{{- end -}}

{{/* (list "item" value): whether the item has everything that the value has. It can have more, such as defaults. */}}
{{- define "kube-node-ready.admission.has" -}}
{{- $at := index . 0 -}}
{{- $value := index . 1 -}}
{{- $all := list -}}
{{- if kindIs "map" $value -}}
{{- range $key, $inner := $value -}}
{{- $all = append $all (printf "%s in %s" (toJson $key) $at) -}}
{{- $all = append $all (include "kube-node-ready.admission.has" (list (printf "%s[%s]" $at (toJson $key)) $inner)) -}}
{{- end -}}
{{- else if kindIs "slice" $value -}}
{{- $all = append $all (printf "%s.size() == %d" $at (len $value)) -}}
{{- range $index, $inner := $value -}}
{{- $all = append $all (include "kube-node-ready.admission.has" (list (printf "%s[%d]" $at $index) $inner)) -}}
{{- end -}}
{{- else -}}
{{- $all = append $all (printf "%s == %s" $at (toJson $value)) -}}
{{- end -}}
{{- $all | compact | join " && " -}}
{{- end -}}

{{/* "container.?securityContext": whether it switches off what the runtime confines every container with. */}}
{{- define "kube-node-ready.admission.unconfined" -}}
{{- printf "%s.?seccompProfile.?type.orValue('') == 'Unconfined'" . }}
        || {{ . }}.?appArmorProfile.?type.orValue('') == 'Unconfined'
        || !({{ . }}.?seLinuxOptions.?type.orValue('') in ['', 'container_t', 'container_init_t', 'container_kvm_t'])
        || {{ . }}.?seLinuxOptions.?user.orValue('') != '' || {{ . }}.?seLinuxOptions.?role.orValue('') != ''
        || {{ . }}.?windowsOptions.?hostProcess.orValue(false)
{{- end -}}
