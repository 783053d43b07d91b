# Check controller logs for retry attempts
kubectl logs -n kube-system -l app.kubernetes.io/component=controller | grep -i failed

# Check worker pod logs
kubectl logs -n kube-system -l app.kubernetes.io/component=worker

# Check worker pod status
kubectl get pods -n kube-system -l app.kubernetes.io/component=worker -o wide

# Manually inspect failed node
kubectl describe node <node-name>
