# Build all binaries (daemonset, controller, worker)
make build-all

# Build specific binary
make build-controller  # Controller
make build-worker      # Worker
make build             # DaemonSet (legacy)

# Build with version information
VERSION=1.0.0 make build-all

# Build Docker/Podman image with all binaries
make docker-build VERSION=1.0.0

# Or manually with podman
podman build \
  --build-arg VERSION=1.0.0 \
  --build-arg COMMIT_HASH=$(git rev-parse --short HEAD) \
  --build-arg BUILD_DATE=$(date -u +%Y-%m-%dT%H:%M:%SZ) \
  -t kube-node-ready:1.0.0 .

# Check version
./bin/kube-node-ready-controller --version
./bin/kube-node-ready-worker --version
./bin/kube-node-ready --version
