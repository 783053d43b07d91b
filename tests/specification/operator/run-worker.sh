# Build worker
make build-worker

# Run worker for a specific node
NODE_NAME=my-node ./examples/run-worker-local.sh
