# Check pod logs
kubectl logs -n kube-system -l app=kube-node-ready --tail=100

# Check DNS resolution from pod
kubectl exec -n kube-system <pod-name> -- nslookup kubernetes.default.svc.cluster.local

# Check node events
kubectl describe node <node-name>
