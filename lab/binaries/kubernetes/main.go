// kubernetes is every Kubernetes component in one program, chosen by the name it is started under, so that the code they
// share is compiled into one file and linked once.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 newKubeletCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	switch newCommand, known := commands[name]; {
	case known:
		os.Exit(cli.Run(newCommand()))
	case name == "etcd":
		etcdmain.Main(os.Args)
	case name == "kubectl":
		// As kubectl's own main does: its errors are sentences, not usage texts.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	default:
		fmt.Fprintf(os.Stderr, "%s: start me as one of: %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
}

// newKubeletCommand compiles against every Kubernetes version the lab knows: 1.32 gave the constructor a context.
func newKubeletCommand() *cobra.Command {
	switch construct := any(kubelet.NewKubeletCommand).(type) {
	case func(context.Context) *cobra.Command:
		return construct(context.Background())
	case func() *cobra.Command:
		return construct()
	default:
		panic(fmt.Sprintf("this Kubernetes version's kubelet is constructed by a %T", construct))
	}
}

func names() []string {
	all := []string{"etcd", "kubectl"}
	for name := range commands {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}
