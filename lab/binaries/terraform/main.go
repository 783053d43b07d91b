// terraform-provider-kubectl plays alekc/kubectl in tests. No recent version of that fork can be had as a Go module, so
// this is the provider that it was forked from, with the two things that the fork has besides and that the Terraform
// modules of kubernetes_daemonset use: field_manager, and a wait_for_rollout that knows DaemonSets.
package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gavinbunney/terraform-provider-kubectl/kubernetes"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/retry"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/plugin"
	apps "k8s.io/api/apps/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: provider})
}

func provider() *schema.Provider {
	original := kubernetes.Provider()
	manifest := original.ResourcesMap["kubectl_manifest"]
	manifest.Schema["field_manager"] = &schema.Schema{Type: schema.TypeString, Optional: true, Default: "kubectl"}
	manifest.CreateContext = schema.CreateContextFunc(asTheForkDoes(manifest.CreateContext))
	manifest.UpdateContext = schema.UpdateContextFunc(asTheForkDoes(schema.CreateContextFunc(manifest.UpdateContext)))
	return original
}

func asTheForkDoes(apply schema.CreateContextFunc) schema.CreateContextFunc {
	return func(ctx context.Context, data *schema.ResourceData, configured any) diag.Diagnostics {
		cluster := *configured.(*kubernetes.KubeProvider)
		cluster.RestConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return &manager{next, data.Get("field_manager").(string)}
		})
		if problems := apply(ctx, data, &cluster); problems.HasError() {
			return problems
		}
		if data.Get("kind") == "DaemonSet" && data.Get("wait_for_rollout").(bool) {
			return diag.FromErr(rollout(ctx, data, &cluster))
		}
		return nil
	}
}

// manager puts its own name where the provider has one that cannot be chosen.
type manager struct {
	next http.RoundTripper
	name string
}

func (m *manager) RoundTrip(request *http.Request) (*http.Response, error) {
	if query := request.URL.Query(); query.Has("fieldManager") {
		request = request.Clone(request.Context())
		query.Set("fieldManager", m.name)
		request.URL.RawQuery = query.Encode()
	}
	return m.next.RoundTrip(request)
}

func rollout(ctx context.Context, data *schema.ResourceData, cluster *kubernetes.KubeProvider) error {
	client := cluster.MainClientset.AppsV1().DaemonSets(data.Get("namespace").(string))
	return retry.RetryContext(ctx, data.Timeout(schema.TimeoutCreate), func() *retry.RetryError {
		daemon, err := client.Get(ctx, data.Get("name").(string), meta.GetOptions{})
		if err != nil {
			return retry.NonRetryableError(err)
		}
		status, desired := daemon.Status, daemon.Status.DesiredNumberScheduled
		everywhere := min(status.UpdatedNumberScheduled, status.NumberAvailable) >= desired
		if everywhere && status.ObservedGeneration >= daemon.Generation {
			return nil
		}
		if daemon.Spec.UpdateStrategy.Type == apps.OnDeleteDaemonSetStrategyType {
			return nil // it rolls when someone deletes pods, and that is not Terraform
		}
		return retry.RetryableError(fmt.Errorf("%d of %d pods are new and available", status.NumberAvailable, desired))
	})
}
