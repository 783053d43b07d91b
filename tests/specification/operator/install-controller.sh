# Install with Helm
helm install kube-node-ready ./deploy/helm/kube-node-ready \
  --namespace kube-system \
  --create-namespace \
  --set deploymentMode=controller

# Verify installation
kubectl get deployment -n kube-system kube-node-ready-controller
kubectl get pods -n kube-system -l app.kubernetes.io/component=controller
