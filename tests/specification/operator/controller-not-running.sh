# Check controller status
kubectl get deployment -n kube-system kube-node-ready-controller

# Check controller logs
kubectl logs -n kube-system -l app.kubernetes.io/component=controller

# Check RBAC permissions
kubectl auth can-i list nodes --as=system:serviceaccount:kube-system:kube-node-ready-controller
kubectl auth can-i create pods --as=system:serviceaccount:kube-system:kube-node-ready-controller
