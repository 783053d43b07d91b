// toolbox is the one program in the lab's own container image: the sandbox of every pod, the first process of every
// node, and small network probes whose exit code is their answer.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A probe that takes longer than this has failed: on one machine every honest answer comes within milliseconds.
const patience = 3 * time.Second

const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/"

type command struct {
	operand string
	summary string
	run     func(operand string) error
}

var commands = map[string]command{
	"pause": {"", "wait until told to stop, and bury the dead", pause},
	"dns":   {"NAME", "print the addresses of NAME", lookUp},
	"tcp":   {"HOST:PORT", "connect", connect},
	"get":   {"URL", "print the status and the size of the answer (https: as the ServiceAccount)", get},
	"serve": {"HOST:PORT", "answer /NUMBER with that many bytes, anything else with the host's name", serve},
}

func main() {
	arguments := append(os.Args[1:], "", "")
	chosen, known := commands[arguments[0]]
	if !known || (chosen.operand == "") != (arguments[1] == "") {
		explain()
	}
	if err := chosen.run(arguments[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func explain() {
	usages := []string{}
	for name, each := range commands {
		usages = append(usages, fmt.Sprintf("  toolbox %-5s %-9s  %s", name, each.operand, each.summary))
	}
	sort.Strings(usages)
	fmt.Fprintf(os.Stderr, "usage:\n%s\n", strings.Join(usages, "\n"))
	os.Exit(2)
}

func pause(string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-stop:
			return nil
		case <-children:
			// One signal may stand for several deaths, so take all there are.
			for pid, err := 1, error(nil); pid > 0 && err == nil; {
				pid, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			}
		}
	}
}

func lookUp(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(addresses, " "))
	return nil
}

func connect(address string) error {
	connection, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return err
	}
	return connection.Close()
}

func get(url string) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	if authority, err := os.ReadFile(accountFolder + "ca.crt"); err == nil {
		trusted.AppendCertsFromPEM(authority)
	}
	if token, err := os.ReadFile(accountFolder + "token"); err == nil && request.URL.Scheme == "https" {
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	client := http.Client{
		Timeout:   patience,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}},
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	size, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		return err
	}
	fmt.Println(response.StatusCode, size)
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", request.URL, response.Status)
	}
	return nil
}

func serve(address string) error {
	return http.ListenAndServe(address, http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if size, err := strconv.Atoi(strings.TrimPrefix(request.URL.Path, "/")); err == nil {
			io.CopyN(answer, endless{}, int64(size))
			return
		}
		name, _ := os.Hostname()
		fmt.Fprintln(answer, name)
	}))
}

// endless is a source of bytes that never ends.
type endless struct{}

func (endless) Read(into []byte) (int, error) { return len(into), nil }
