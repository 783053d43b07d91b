# Check pod events
kubectl describe pod -n kube-system <worker-pod-name>

# Check if node is schedulable
kubectl get node <node-name> -o json | jq '.spec.taints'

# Manually delete stuck worker
kubectl delete pod -n kube-system <worker-pod-name>
# Controller will recreate it
