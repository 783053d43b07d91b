# Remove the verified label
kubectl label node <node-name> node-ready/verified-

# Controller mode: Controller will create new worker pod automatically
# DaemonSet mode: New pod will be scheduled automatically

# Watch for new pods
kubectl get pods -n kube-system -w
