{{/* The chart's name, as in labels. */}}
{{- define "kube-node-ready.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The beginning of every name. */}}
{{- define "kube-node-ready.fullname" -}}
{{- $name := include "kube-node-ready.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* (list . "controller"): a name of at most 63 characters that keeps its ending, however long the release's is. */}}
{{- define "kube-node-ready.named" -}}
{{- $root := index . 0 -}}
{{- $ending := index . 1 -}}
{{- $room := int (sub 62 (len $ending)) -}}
{{- printf "%s-%s" (include "kube-node-ready.fullname" $root | trunc $room | trimSuffix "-") $ending -}}
{{- end -}}

{{- define "kube-node-ready.controller.name" -}}
{{- include "kube-node-ready.named" (list . "controller") -}}
{{- end -}}

{{- define "kube-node-ready.worker.name" -}}
{{- include "kube-node-ready.named" (list . "worker") -}}
{{- end -}}

{{- define "kube-node-ready.controller.account" -}}
{{- .Values.controller.serviceAccount.name | default (include "kube-node-ready.controller.name" .) -}}
{{- end -}}

{{/* The name under which the API server knows the controller. */}}
{{- define "kube-node-ready.controller.username" -}}
{{- printf "system:serviceaccount:%s:%s" .Release.Namespace (include "kube-node-ready.controller.account" .) -}}
{{- end -}}

{{- define "kube-node-ready.worker.account" -}}
{{- $own := .Values.controller.config.worker.serviceAccountName | default .Values.worker.serviceAccount.name -}}
{{- $own | default (include "kube-node-ready.worker.name" .) -}}
{{- end -}}

{{- define "kube-node-ready.daemonset.account" -}}
{{- .Values.daemonset.serviceAccount.name | default (include "kube-node-ready.fullname" .) -}}
{{- end -}}

{{/* What pods are selected by; it must never change, since a Deployment's selector cannot. */}}
{{- define "kube-node-ready.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "kube-node-ready.name" $root | quote }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* (list . "controller"): the labels of an object. */}}
{{- define "kube-node-ready.labels" -}}
{{- $root := index . 0 -}}
{{- $own := include "kube-node-ready.selector" . | fromYaml -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $own "app.kubernetes.io/version" $root.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- merge $own $root.Values.commonLabels | toYaml -}}
{{- end -}}

{{/* (list . "controller" more): the labels of an object with more of its own; the chart's win. */}}
{{- define "kube-node-ready.labels.more" -}}
{{- merge (include "kube-node-ready.labels" . | fromYaml) (index . 2) | toYaml -}}
{{- end -}}

{{/* (list . "controller" labels): the labels of a pod. Without versions: a new chart alone must restart nothing. */}}
{{- define "kube-node-ready.podLabels" -}}
{{- $root := index . 0 -}}
{{- $own := include "kube-node-ready.selector" . | fromYaml -}}
{{- $_ := set $own "app" "kube-node-ready" -}}
{{- merge $own (index . 2) $root.Values.commonLabels | toYaml -}}
{{- end -}}

{{/* (list . annotations…): the `annotations:` of an object, if there are any; the first of the given wins. */}}
{{- define "kube-node-ready.annotations" -}}
{{- $root := index . 0 -}}
{{- $all := dict -}}
{{- range rest . }}{{ $all = merge $all . }}{{ end -}}
{{- with merge $all $root.Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{/* (list . own): image, with the keys of `own` in the place of those at the top. A digest belongs to one image. */}}
{{- define "kube-node-ready.image.parts" -}}
{{- $root := index . 0 -}}
{{- $own := index . 1 | default dict -}}
{{- $top := $root.Values.image -}}
{{- $digest := $own.digest -}}
{{- if not (or $own.digest $own.tag $own.repository) }}{{ $digest = $top.digest }}{{ end -}}
repository: {{ $own.repository | default $top.repository }}
tag: {{ $own.tag | default $top.tag | default $root.Chart.AppVersion | quote }}
digest: {{ $digest | default "" | quote }}
pullPolicy: {{ $own.pullPolicy | default $top.pullPolicy }}
{{- end -}}

{{- define "kube-node-ready.image" -}}
{{- $image := include "kube-node-ready.image.parts" . | fromYaml -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository $image.tag -}}
{{- end -}}
{{- end -}}

{{/* A repository: not empty if its first part is a registry, as container runtimes read it. */}}
{{- define "kube-node-ready.image.hasRegistry" -}}
{{- if regexMatch "^(localhost|[^/]*[.:][^/]*)/" . }}true{{ end -}}
{{- end -}}

{{/* For NOTES: what keeps nodes from pulling the images, or workers from reporting. */}}
{{- define "kube-node-ready.image.warnings" -}}
{{- $own := eq .Values.deploymentMode "controller" | ternary .Values.controller.image .Values.daemonset.image -}}
{{- $image := include "kube-node-ready.image.parts" (list . $own) | fromYaml -}}
{{- if eq $image.repository "ghcr.io/imunhatep/kube-node-ready" }}

THE IMAGE IS THE GO VERSION'S: {{ $image.repository }}. Its programs do not read what this chart writes, so no node passes.
Remove these values if they were written for the Go version: image, controller.image, daemonset.image and
controller.config.worker.image. Then set image.repository to an image of this version.
{{- end }}
{{- if not (include "kube-node-ready.image.hasRegistry" $image.repository) }}

THE IMAGE {{ include "kube-node-ready.image" (list . $own) }} HAS NO REGISTRY. No image is published yet: unless your nodes have it,
they try to pull it from their default registry, and pods end in ImagePullBackOff. From a checkout, with your registry:
  make image && skopeo copy --all oci-archive:dist/kube-node-ready-{{ .Chart.AppVersion }}.tar docker://REGISTRY/kube-node-ready:{{ $image.tag }}
  helm upgrade {{ .Release.Name }} CHART -n {{ .Release.Namespace }} --reset-then-reuse-values --set image.repository=REGISTRY/kube-node-ready
{{- end }}
{{- if eq .Values.deploymentMode "controller" }}
{{- $worker := (include "kube-node-ready.controller.config" . | fromYaml).worker.image }}
{{- if ne $worker.repository $image.repository }}

WORKERS HAVE ANOTHER IMAGE THAN THE CONTROLLER: {{ $worker.repository }}, not {{ $image.repository }}.
The controller cannot read the reports of another program, so no node passes.
Set image.repository for both, and remove controller.image and controller.config.worker.image, unless both are the same
program.
{{- end }}
{{- end }}
{{- end -}}

{{/* The secrets to pull images with, whether given as names or as mappings. */}}
{{- define "kube-node-ready.pullSecrets" -}}
{{- range .Values.imagePullSecrets }}
- name: {{ if kindIs "string" . }}{{ . }}{{ else }}{{ .name }}{{ end }}
{{- end }}
{{- end -}}

{{/* Tolerations of pods that must be able to run where every node is new: (list gates more). */}}
{{- define "kube-node-ready.tolerations" -}}
{{- range index . 0 | uniq }}
- key: {{ . | quote }}
  operator: Exists
{{- end }}
- key: node.kubernetes.io/not-ready
  operator: Exists
  effect: NoSchedule
- key: node.kubernetes.io/unreachable
  operator: Exists
  effect: NoSchedule
{{- with index . 1 }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* "1m30s" -> 90 */}}
{{- define "kube-node-ready.seconds" -}}
{{- $hours := regexFind "[0-9.]+h" . | trimSuffix "h" | float64 -}}
{{- $minutes := regexFind "[0-9.]+m" . | trimSuffix "m" | float64 -}}
{{- $seconds := regexFind "[0-9.]+s" . | trimSuffix "s" | float64 -}}
{{- addf (mulf $hours 3600) (mulf $minutes 60) $seconds -}}
{{- end -}}

{{/* (list "checkInterval" "2h" 1): rejects what the program rejects, a duration that is too short or above an hour. */}}
{{- define "kube-node-ready.bounded" -}}
{{- $seconds := include "kube-node-ready.seconds" (index . 1) | float64 -}}
{{- $least := index . 2 -}}
{{- if or (lt $seconds (float64 $least)) (gt $seconds 3600.0) -}}
{{- fail (printf "%s: %s is invalid; expected a duration from %ds to 1h" (index . 0) (index . 1) $least) -}}
{{- end -}}
{{- end -}}

{{/* (list services dnsService) -> namespaces, each with the names of the Services that are read there. */}}
{{- define "kube-node-ready.services" -}}
{{- $found := dict -}}
{{- range append (index . 0) (index . 1) | compact | uniq -}}
{{- $parts := splitList "/" . -}}
{{- $_ := set $found (first $parts) (append (get $found (first $parts) | default list) (last $parts)) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* Rules to read the Services that are checked, in one namespace. */}}
{{- define "kube-node-ready.rules.services" -}}
- apiGroups: [""]
  resources: [services]
  resourceNames:
    {{- toYaml . | nindent 4 }}
  verbs: [get]
# A list by label cannot be narrowed to names.
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list]
{{- end -}}

{{/* (list kind role account namespace): what a binding binds. */}}
{{- define "kube-node-ready.binding" -}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ index . 0 }}
  name: {{ index . 1 }}
subjects:
  - kind: ServiceAccount
    name: {{ index . 2 }}
    namespace: {{ index . 3 | quote }}
{{- end -}}

{{/* (list settings selector namespace): the spec of a PodMonitor. */}}
{{- define "kube-node-ready.podMonitor.spec" -}}
{{- $monitor := index . 0 -}}
selector:
  matchLabels:
    {{- index . 1 | nindent 4 }}
namespaceSelector:
  matchNames:
    - {{ index . 2 | quote }}
podMetricsEndpoints:
  - port: metrics
    path: /metrics
    {{- with include "kube-node-ready.scraping" $monitor | trim }}
    {{- nindent 4 . }}
    {{- end }}
{{- end -}}

{{- define "kube-node-ready.scraping" -}}
{{- with .interval }}
interval: {{ . }}
{{- end }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
