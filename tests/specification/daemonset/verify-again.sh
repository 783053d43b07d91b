# Remove the label
kubectl label node <node-name> node-ready/verified-

# Watch pod get scheduled again
kubectl get pods -n kube-system -l app=kube-node-ready -w
