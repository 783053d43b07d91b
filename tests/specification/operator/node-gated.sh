# New node created by Karpenter/autoscaler with taint
kubectl get node <node-name> -o yaml
# spec:
#   taints:
#   - key: node-ready/unverified
#     value: "true"
#     effect: NoSchedule
