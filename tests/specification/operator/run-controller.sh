# Build controller
make build-controller

# Run controller against your cluster
./examples/run-controller-local.sh

# Or with custom config
CONFIG_FILE=/path/to/config.yaml ./examples/run-controller-local.sh
