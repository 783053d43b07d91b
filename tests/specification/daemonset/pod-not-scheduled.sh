# Check node labels
kubectl get node <node-name> --show-labels

# Check pod tolerations
kubectl get ds kube-node-ready -n kube-system -o yaml | grep -A 10 tolerations
