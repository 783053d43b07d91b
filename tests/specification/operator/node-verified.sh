# Controller removes taint and adds verified label
kubectl get node <node-name> -o yaml
# metadata:
#   labels:
#     node-ready/verified: "true"
# spec:
#   taints: []  # Taint removed
