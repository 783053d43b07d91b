"""The controller: watch nodes and worker pods, reconcile nodes, write the results."""
