#!/bin/sh
set -eu

usage() {
    cat <<'END'
usage: NODE_NAME=my-node examples/run-worker-local.sh

Runs the worker's checks once, from this machine and against the cluster of the current kubeconfig. It changes nothing.
What only a pod can try, such as to reach other pods, is skipped and says so; what fails here need not fail in a pod.

  NODE_NAME     what the report calls this machine; its host name if it is not set
  KUBECONFIG    which cluster; ~/.kube/config if it is not set
  CONFIG_FILE   the worker's configuration; examples/worker-config.yaml if it is not set

The program is bin/kube-node-ready-worker, if `make build-worker` made one, or else the checkout's own. The one in bin/
needs a Python and nothing else: copied to a node, it checks that very node.

Exit codes: 0 nothing failed, 1 a check failed, 2 a setting is invalid, 3 the API server is not reachable, 10 unexpected error.
END
}

fail() {
    echo "run-worker-local.sh: $2" >&2
    exit "$1"
}

case "${1-}" in -h | --help) usage && exit ;; esac
[ $# = 0 ] || fail 2 "there are no flags but --help"

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
program=kube-node-ready-worker
for folder in "$here/../bin" "$here/../.venv/bin"; do
    [ -x "$folder/$program" ] && break
done
[ -x "$folder/$program" ] || fail 1 "there is no $program; \`make build-worker\` makes bin/$program"

config=${CONFIG_FILE:-$here/worker-config.yaml}
[ -f "$config" ] || fail 2 "there is no configuration $config; CONFIG_FILE names it"

# KUBECONFIG can name several files, which are merged as kubectl does; those that do not exist are skipped.
named=${KUBECONFIG:-${HOME-}/.kube/config}
kubeconfig=
set -f
IFS=:
for file in $named; do
    [ -f "$file" ] && kubeconfig=$named && break
done
unset IFS
[ "$kubeconfig" ] || fail 3 "there is no kubeconfig $named; KUBECONFIG names another one"

echo "run-worker-local.sh: $("$folder/$program" --version), by $kubeconfig and $config" >&2
unset KUBERNETES_SERVICE_HOST
export KUBECONFIG="$kubeconfig" WORKER_CONFIG_PATH="$config"
export NODE_NAME="${NODE_NAME:-$(uname -n)}" LOG_FORMAT="${LOG_FORMAT:-console}"
exec "$folder/$program" --dry-run
