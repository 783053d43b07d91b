helm install kube-node-ready ./deploy/helm/kube-node-ready \
  --namespace kube-system
