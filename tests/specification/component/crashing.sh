kubectl logs -n <namespace> -l app=daemonset --all-containers
