#!/bin/sh
set -eu

usage() {
    cat <<'END'
usage: examples/run-controller-local.sh [FLAG...]

Runs the controller on this machine, against the cluster of the current kubeconfig. It really works there: it makes
worker pods and opens the gates of nodes that pass. With --dry-run it only says what it would do.

  KUBECONFIG    which cluster; ~/.kube/config if it is not set
  CONFIG_FILE   the controller's configuration; examples/controller-config.yaml if it is not set

FLAGs are the controller's: `--dry-run`, `--log-level=debug`, `--metrics-bind-address=:9090`; docs/configuration.md has
them all. The program is bin/kube-node-ready-controller, if `make build-controller` made one, or else the checkout's.

Workers need an image that the nodes can pull, and a ServiceAccount with its rights:

  export KUBE_NODE_READY_WORKER_IMAGE_REPOSITORY=registry.example/team/kube-node-ready
  export KUBE_NODE_READY_WORKER_IMAGE_TAG=1.0.0-alpha.1
  helm template kube-node-ready deploy/helm/kube-node-ready --namespace=kube-system --set=admissionPolicy.enabled=true \
    --show-only=templates/worker/serviceaccount.yaml --show-only=templates/worker/rbac.yaml | kubectl apply -f -

Beside a controller that is deployed there it stands by: both compete for the same Lease.
END
}

fail() {
    echo "run-controller-local.sh: $2" >&2
    exit "$1"
}

case "${1-}" in -h | --help) usage && exit ;; esac

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
program=kube-node-ready-controller
for folder in "$here/../bin" "$here/../.venv/bin"; do
    [ -x "$folder/$program" ] && break
done
[ -x "$folder/$program" ] || fail 1 "there is no $program; \`make build-controller\` makes bin/$program"

config=${CONFIG_FILE:-$here/controller-config.yaml}
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

echo "run-controller-local.sh: $("$folder/$program" --version), by $kubeconfig and $config" >&2
placeholder=registry.example/team/kube-node-ready
if [ -z "${KUBE_NODE_READY_WORKER_IMAGE_REPOSITORY-}" ] && grep -q "repository: *$placeholder *\$" "$config"; then
    echo "run-controller-local.sh: warning: worker.image.repository is the placeholder $placeholder, which no node can" \
        "pull; set KUBE_NODE_READY_WORKER_IMAGE_REPOSITORY, or no node passes" >&2
fi
exec "$folder/$program" --config="$config" --kubeconfig="$kubeconfig" --log-format=console "$@"
