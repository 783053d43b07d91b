# Check if node has the verified label already
kubectl get nodes -L node-ready/verified

# Check DaemonSet nodeAffinity
kubectl get ds -n kube-system kube-node-ready -o yaml | grep -A 10 affinity
