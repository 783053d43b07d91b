# Check if label exists
kubectl get node <node-name> --show-labels | grep verified

# Manually add label if needed (testing only)
kubectl label node <node-name> node-ready/verified=true
