"""The Kubernetes client library: requests, informers, workqueue, leader election. Independent of verification."""
