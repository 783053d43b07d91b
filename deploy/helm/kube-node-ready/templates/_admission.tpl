{{/*
"true" if there is to be a policy, else empty. A plain `helm template` or `--dry-run` does not contact a cluster: Helm then has a list
of API versions of its own, without a single kind. Leaving the policies out there would silently install the chart
without them, so they are rendered; a cluster that does not support them rejects them.
*/}}
{{- define "kube-node-ready.admission.wanted" -}}
{{- $wanted := .Values.admissionPolicy.enabled -}}
{{- if eq (toString $wanted) "auto" -}}
{{- $apis := .Capabilities.APIVersions -}}
{{- $wanted = or ($apis.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") (not ($apis.Has "v1/Pod")) -}}
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

{{/* (list "labels" key …): of this mapping, no other key is added, removed or changed. */}}
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

{{/*
"" or "!variables.isUpdated || ": validations that limit the size of the record and of the condition of a Node, or what is
true instead. Its kubelet can write larger ones, which can stay as they are.
*/}}
{{- define "kube-node-ready.admission.sizes" -}}
- expression: >-
    {{ . }}!("node-ready/verification" in variables.annotations)
    || bytes(variables.annotations["node-ready/verification"]).size() <= 16384
    || optional.of(variables.annotations["node-ready/verification"])
    == variables.annotationsBefore[?"node-ready/verification"]
  message: of a Node's annotations, node-ready/verification can have at most 16 KiB
  reason: Forbidden
- expression: >-
    {{ . }}variables.conditions.filter(item, item.type == "NodeVerified").size() <= 1
    || variables.conditions.filter(item, item.type == "NodeVerified").size()
    <= variables.conditionsBefore.filter(item, item.type == "NodeVerified").size()
  message: of a Node's conditions, there can be at most one condition NodeVerified
  reason: Forbidden
- expression: >-
    {{ . }}variables.conditions.all(item, item.type != "NodeVerified"
    || (item.?status.orValue("") in ["True", "False", "Unknown"]
    && bytes(item.?reason.orValue("")).size() <= 1024 && bytes(item.?message.orValue("")).size() <= 32768)
    || item in variables.conditionsBefore)
  message: >-
    of a Node's conditions, NodeVerified can be True, False or Unknown, with a reason of at most 1 KiB and a message of at
    most 32 KiB
  reason: Forbidden
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

{{- define "kube-node-ready.admission.exec" -}}
{{- include "kube-node-ready.named" (list . "workers-exec") -}}
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

{{/* Keys that the server adds to volumes: defaults, and quantities, which it writes in its own way. */}}
{{- define "kube-node-ready.admission.serverKeys" -}}
{{- list "apiGroup" "apiVersion" "cachingMode" "creationTimestamp" "defaultMode" "divisor" "expirationSeconds" "fsType"
  "iscsiInterface" "keyring" "kind" "metadata" "pool" "pullPolicy" "readOnly" "resources" "sizeLimit" "storageMode"
  "type" "user" "volumeMode" | toJson -}}
{{- end -}}

{{/*
(list "volume" value): whether the volume is the value, as the server stores it. It omits empty values and fills in
defaults. Quantities are not compared. `variables.serverKeys` has the keys that it can add.
*/}}
{{- define "kube-node-ready.admission.is" -}}
{{- $at := index . 0 -}}
{{- $value := index . 1 -}}
{{- $all := list -}}
{{- if kindIs "map" $value -}}
{{- $value = omit $value "divisor" "resources" "sizeLimit" -}}
{{- $known := keys $value | sortAlpha | toJson -}}
{{- $all = append $all (printf "%s.all(key, key in %s || key in variables.serverKeys)" $at $known) -}}
{{- if not $value.metadata -}}
{{- $all = append $all (printf "%s[?\"metadata\"].orValue({}).all(key, key == \"creationTimestamp\")" $at) -}}
{{- end -}}
{{- if not $value.type -}}
{{- $all = append $all (printf "%s[?\"type\"].orValue(\"\") == \"\"" $at) -}}
{{- end -}}
{{- range $key, $inner := $value -}}
{{- $part := printf "%s[%s]" $at (toJson $key) -}}
{{- /* The kind of a volume can be an empty mapping, as in `emptyDir: {}`. */ -}}
{{- if or $inner (and (kindIs "map" $inner) (eq $at "volume")) -}}
{{- $all = append $all (printf "%s in %s" (toJson $key) $at) -}}
{{- $all = append $all (include "kube-node-ready.admission.is" (list $part $inner)) -}}
{{- else if not (kindIs "invalid" $inner) -}}
{{- $all = append $all (printf "%s[?%s].orValue(%s) == %s" $at (toJson $key) (toJson $inner) (toJson $inner)) -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" $value -}}
{{- $all = append $all (printf "%s.size() == %d" $at (len $value)) -}}
{{- range $index, $inner := $value -}}
{{- $all = append $all (include "kube-node-ready.admission.is" (list (printf "%s[%d]" $at $index) $inner)) -}}
{{- end -}}
{{- else -}}
{{- $all = append $all (printf "%s == %s" $at (toJson $value)) -}}
{{- end -}}
{{- $all | compact | join " && " -}}
{{- end -}}

{{/* "mount": a mount in one line. Neither names nor mount paths can contain its separators. */}}
{{- define "kube-node-ready.admission.mount" -}}
({{ . }}.name + ' ' + string({{ . }}.?readOnly.orValue(false))
        + ' ' + {{ . }}.mountPath + ':' + {{ . }}.?subPath.orValue(''))
{{- end -}}

{{/* "container.?securityContext": whether it switches off what the runtime confines every container with. */}}
{{- define "kube-node-ready.admission.unconfined" -}}
{{- printf "%s.?seccompProfile.?type.orValue('') == 'Unconfined'" . }}
        || {{ . }}.?appArmorProfile.?type.orValue('') == 'Unconfined'
        || !({{ . }}.?seLinuxOptions.?type.orValue('') in ['', 'container_t', 'container_init_t', 'container_kvm_t'])
        || {{ . }}.?seLinuxOptions.?user.orValue('') != '' || {{ . }}.?seLinuxOptions.?role.orValue('') != ''
        || {{ . }}.?windowsOptions.?hostProcess.orValue(false)
{{- end -}}
