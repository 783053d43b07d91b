# Watch pods
kubectl get pods -n kube-system -l app=kube-node-ready -w

# Watch node labels
kubectl get nodes --show-labels -w

# Check specific node
kubectl describe node <node-name>
