# Run unit tests
go test ./...

# Test Helm chart
helm lint ./deploy/helm/kube-node-ready

# Dry-run install
helm install kube-node-ready ./deploy/helm/kube-node-ready \
  --namespace kube-system \
  --dry-run --debug
