# Install in DaemonSet mode (legacy)
helm install kube-node-ready ./deploy/helm/kube-node-ready \
  --namespace kube-system \
  --set deploymentMode=daemonset
