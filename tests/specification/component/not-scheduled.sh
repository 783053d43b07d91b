kubectl describe daemonset <name> -n <namespace>
kubectl get events -n <namespace>
