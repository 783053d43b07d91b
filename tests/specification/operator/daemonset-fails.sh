# Check pod logs
kubectl logs -n kube-system -l app.kubernetes.io/name=kube-node-ready

# Check node taints
kubectl describe node <node-name> | grep Taints

# Manually test DNS from pod
kubectl exec -n kube-system <pod-name> -- nslookup kubernetes.default.svc.cluster.local
