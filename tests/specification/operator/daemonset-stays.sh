# Verify label was added
kubectl get node <node-name> --show-labels | grep verified

# Force label addition (testing only)
kubectl label node <node-name> node-ready/verified=true

# Pod should terminate automatically
