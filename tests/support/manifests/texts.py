"""Manifests as people write them: the two examples of the specification, and one that uses every field."""

from typing import Final

from tests import specification

FLUENTD: Final = specification.text("component/fluentd.yaml")
NODE_EXPORTER: Final = specification.text("component/node-exporter.yaml")
LOGS: Final = specification.text("component/crashing.sh")
SPEC_PROTO: Final = specification.text("component/spec.txt")
PROTO_FILES: Final = specification.text("component/files.txt")
DOCUMENTATION: Final = PROTO_FILES

WHOLE: Final = """\
target:
  apiVersion: kubernetes.project-planton.org/v1
  kind: KubernetesDaemonSet
  metadata:
    name: agent
    slug: the-agent
    id: k8sds-1
    org: acme
    env: production
    labels: {team: nodes}
    annotations: {example.com/owner: nodes}
    tags: [agents]
    relationships:
    - {kind: AwsEksCluster, env: production, name: main, type: runs_on, group: clusters}
    group: agents
  spec:
    target_cluster: {cluster_kind: AwsEksCluster, cluster_name: main}
    namespace: monitoring
    create_namespace: true
    node_selector: {kubernetes.io/os: linux}
    tolerations:
    - {key: pool, operator: Equal, value: gpu, effect: NoExecute, toleration_seconds: 0}
    update_strategy: {type: RollingUpdate, rolling_update: {max_unavailable: 10%, max_surge: 0}}
    min_ready_seconds: 5
    create_service_account: true
    service_account_name: robot
    config_maps: {agent.conf: "level: info"}
    rbac:
      cluster_rules:
      - {api_groups: [""], resources: [nodes], verbs: [get], resource_names: [node-1]}
      - {non_resource_urls: [/metrics], verbs: [get]}
      namespace_rules:
      - {api_groups: [apps], resources: [daemonsets], verbs: [list], resource_names: [agent]}
    affinity:
      node_affinity:
        required_during_scheduling_ignored_during_execution:
          node_selector_terms:
          - match_expressions: [{key: zone, operator: In, values: [a]}]
            match_fields: [{key: metadata.name, operator: NotIn, values: [node-2]}]
        preferred_during_scheduling_ignored_during_execution:
        - weight: 1
          preference:
            match_expressions: [{key: zone, operator: NotIn, values: [b]}]
            match_fields: [{key: metadata.name, operator: NotIn, values: [node-3]}]
      pod_affinity: &near
        required_during_scheduling_ignored_during_execution:
        - &term
          label_selector: &selector
            match_labels: {app: web}
            match_expressions: [{key: tier, operator: In, values: [front]}]
          namespaces: [web]
          topology_key: kubernetes.io/hostname
          namespace_selector: *selector
        preferred_during_scheduling_ignored_during_execution:
        - {weight: 100, pod_affinity_term: *term}
      pod_anti_affinity: *near
    priority_class_name: system-node-critical
    host_network: true
    host_pid: true
    host_ipc: true
    dns_policy: Default
    pod_labels: {part: agent}
    pod_annotations: {example.com/scrape: "true"}
    pod_security_context:
      run_as_user: 0
      run_as_group: 0
      run_as_non_root: false
      fs_group: 0
      supplemental_groups: [0]
      seccomp_profile: {type: Localhost, localhost_profile: agent.json}
      se_linux_options: {user: u, role: r, type: t, level: l}
    termination_grace_period_seconds: 0
    revision_history_limit: 0
    image_pull_secrets: [more-logins]
    service_account_annotations: {example.com/role: agent}
    automount_service_account_token: false
    runtime_class_name: runc
    share_process_namespace: false
    require_on_new_nodes: true
    container:
      app:
        image:
          repo: registry.example.com/agent
          tag: 1.4.2
          pull_secret_name: login
          digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
          pull_policy: Always
        resources: &resources
          limits: &amounts {cpu: "2", memory: 2Gi, ephemeral_storage: 2Gi, other: {example.com/gpu: 1}}
          requests: *amounts
        env:
          variables:
            LEVEL: info
            CONFIG: &from_config {config_map_key_ref: {name: agent.conf, key: agent.conf, optional: true}}
            NODE: &from_pod {field_ref: {field_path: spec.nodeName, api_version: v1}}
            CPUS: &from_resources {resource_field_ref: {resource: limits.cpu, container_name: agent, divisor: 1m}}
            TOKEN: &from_secret {secret_ref: {namespace: monitoring, name: tokens, key: agent, optional: true}}
          secrets:
            PASSWORD: geheim
            LICENCE: *from_secret
          env_from: &env_from
          - {prefix: A_, config_map_ref: {name: agent.conf, optional: false}}
          - {prefix: B_, secret_ref: {name: more, optional: true}}
        ports:
        - {name: metrics, container_port: 9100, network_protocol: SCTP, host_port: 9100}
        volume_mounts: &mounts
        - name: config
          mount_path: /etc/agent
          read_only: true
          sub_path: agent.conf
          config_map: {name: agent.conf, key: agent.conf, path: agent.yaml, default_mode: 0, optional: false}
        - name: tokens
          mount_path: /tokens
          sub_path_expr: $(K8S_NODE_NAME)
          secret: {name: tokens, key: agent, path: token, default_mode: 0400, optional: true}
        - name: log
          mount_path: /var/log
          mount_propagation: Bidirectional
          host_path: {path: /var/log, type: Directory}
        - {name: cache, mount_path: /cache, empty_dir: {medium: Memory, size_limit: 64Mi}}
        - {name: data, mount_path: /data, pvc: {claim_name: data, read_only: true}}
        liveness_probe: &by_http
          initial_delay_seconds: 0
          period_seconds: 1
          timeout_seconds: 2
          success_threshold: 1
          failure_threshold: 4
          termination_grace_period_seconds: 5
          http_get: &request
            path: /healthz
            port_number: 9100
            host: localhost
            scheme: HTTPS
            http_headers: [{name: Accept, value: text/plain}]
        readiness_probe: {grpc: {port: 9100, service: agent}}
        startup_probe: &by_socket {tcp_socket: {port_name: metrics, host: localhost}}
        command: [/agent]
        args: [--verbose]
        security_context: &rights
          privileged: true
          run_as_user: 0
          run_as_group: 0
          run_as_non_root: false
          read_only_root_filesystem: false
          capabilities: {add: [NET_ADMIN], drop: [ALL]}
          allow_privilege_escalation: true
          seccomp_profile: {type: Localhost, localhost_profile: agent.json}
          se_linux_options: {user: u, role: r, type: t, level: l}
        lifecycle: {post_start: {http_get: *request}, pre_stop: {exec: {command: [/agent, stop]}}}
        working_dir: /work
      sidecars:
      - &beside
        name: helper
        image: registry.example.com/helper:1
        ports: [{name: web, container_port: 80, protocol: UDP, host_port: 80}]
        resources: *resources
        env:
        - {name: LEVEL, value: info}
        - {<<: *from_config, name: CONFIG}
        - {<<: *from_pod, name: NODE}
        - {<<: *from_resources, name: CPUS}
        - {<<: *from_secret, name: TOKEN}
        env_from: *env_from
        command: [/helper]
        args: [--quiet]
        volume_mounts: *mounts
        liveness_probe: *by_http
        readiness_probe: {exec: {command: ["true"]}}
        startup_probe: {tcp_socket: {port_number: 80}}
        security_context: *rights
        pull_policy: Never
        working_dir: /work
        lifecycle: {pre_stop: {exec: {command: [/helper, stop]}}}
    init_containers:
    - <<: *beside
      name: before
      ports: [{name: early, container_port: 81, protocol: UDP, host_port: 81}]
      liveness_probe: {http_get: {port_name: early}}
      restart_policy: Always
  status:
    outputs:
      namespace: monitoring
      daemonset_name: agent
      desired_number_scheduled: "3"
      current_number_scheduled: "3"
      number_ready: "3"
provider_config: {provider: digital_ocean_doks, digital_ocean_doks: {kube_config: e30=}}
docker_config_json: '{"auths": {}}'
"""
"""A valid manifest in which every field has a value other than its default."""
