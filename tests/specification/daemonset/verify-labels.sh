# Should see verified=true on ready nodes
kubectl get nodes -L node-ready/verified

# Example output:
# NAME                          STATUS   ROLES    AGE     VERSION   VERIFIED
# ip-10-0-1-100.ec2.internal   Ready    <none>   5m      v1.28.0   true
# ip-10-0-1-101.ec2.internal   Ready    <none>   3m      v1.28.0   true
