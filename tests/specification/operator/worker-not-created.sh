# Check controller logs
kubectl logs -n kube-system -l app.kubernetes.io/component=controller

# Check if node is already verified
kubectl get nodes -L node-ready/verified

# Check controller reconciliation
kubectl describe deployment -n kube-system kube-node-ready-controller
