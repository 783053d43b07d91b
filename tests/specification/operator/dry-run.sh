# Build daemonset binary
make build

# Run with dry-run flag
./bin/kube-node-ready --dry-run --log-format=console

# With debug logging
./bin/kube-node-ready --dry-run --log-level=debug --log-format=console
