"""Exit codes of situations that need no cluster. Those that need one are in tests/cluster/test_contract.py."""

import shlex
from typing import Final

from tests.contract.golden import Facts
from tests.contract.programs import run_all

SITUATIONS: Final = """
kube-node-ready --version
kube-node-ready --no-such-flag
kube-node-ready no-such-verb
NODE_NAME=node-1 MAX_RETRIES=many kube-node-ready
NODE_NAME=node-1 kube-node-ready
kube-node-ready --dry-run --kubeconfig=absent.kubeconfig
kube-node-ready --dry-run --dns-test-domains=localhost --network-targets=127.0.0.1:1
kube-node-ready-controller --version
kube-node-ready-controller --no-such-flag
kube-node-ready-controller --config=invalid.yaml
POD_IMAGE=registry.example/a:1 kube-node-ready-controller --kubeconfig=absent.kubeconfig
kube-node-ready-controller --config=every-key.yaml --kubeconfig=absent.kubeconfig
kube-node-ready-worker --version
kube-node-ready-worker
NODE_NAME=node-1 CHECK_TIMEOUT=long kube-node-ready-worker
NODE_NAME=node-1 kube-node-ready-worker
kube-node-ready status --no-such-flag
kube-node-ready status --kubeconfig=absent.kubeconfig
kube-node-ready explain
kube-node-ready verify --kubeconfig=unreachable.kubeconfig node-1
kube-node-ready pause --kubeconfig=unreachable.kubeconfig
kube-node-ready check --config=passing.yaml
kube-node-ready check --config=failing.yaml
kube-node-ready check --config=invalid.yaml
kube-node-ready check --config=passing.yaml --kubeconfig=absent.kubeconfig
kube-node-ready config check every-key.yaml
kube-node-ready config check --worker passing.yaml
kube-node-ready config check invalid.yaml
kube-node-ready status --selector=a=( --kubeconfig=absent.kubeconfig
kube-node-ready status --group-by=pool --output=json --kubeconfig=absent.kubeconfig
kube-node-ready help verify
kube-node-ready help no-such-verb
kube-node-ready version
kube-node-ready completion bash
kube-node-ready completion no-such-shell
kubectl-node_ready status --kubeconfig=absent.kubeconfig
kubectl_complete-node_ready ""
kubernetes-daemonset --version
kubernetes-daemonset no-such-verb
kubernetes-daemonset validate -f agent.yaml
kubernetes-daemonset validate -f invalid.yaml
kubernetes-daemonset validate -f absent.yaml
kubernetes-daemonset validate -f stack-input.yaml
KUBERNETES_DAEMONSET_TRUST_KUBECONFIG=true kubernetes-daemonset validate -f stack-input.yaml
kubernetes-daemonset diff -f agent.yaml --kubeconfig unreachable.kubeconfig
kubernetes-daemonset apply -f invalid.yaml --kubeconfig unreachable.kubeconfig
kubernetes-daemonset apply -f agent.yaml --kubeconfig unreachable.kubeconfig
kubernetes-daemonset outputs -f agent.yaml --kubeconfig unreachable.kubeconfig
kubernetes-daemonset explain spec.no_such_field
kubernetes-daemonset init
kubernetes-daemonset init no-such-starter
"""


def exit_codes() -> Facts:
    lines = SITUATIONS.strip().splitlines()
    done = run_all([shlex.split(line) for line in lines])
    return {line: str(each.returncode) for line, each in zip(lines, done, strict=True)}
