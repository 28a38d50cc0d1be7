// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// The API server is asked about clients of the metrics endpoint.
//
// +kubebuilder:rbac:roleName=metrics-role,groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:roleName=metrics-role,groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// diagnostics returns the options of the metrics endpoint, which are those of Cluster API's managers (cluster-api:
// util/flags/manager.go). The API server of home, the cluster in which the operator runs, authenticates and authorizes
// each client, unless --insecure-diagnostics is set.
func diagnostics(options *Options, home *rest.Config) server.Options {
	endpoint := server.Options{BindAddress: address(options, options.Core.MetricsPort), ExtraHandlers: profiles(options)}
	if options.InsecureDiagnostics {
		return endpoint
	}
	endpoint.SecureServing, endpoint.CertDir = true, options.MetricsCertPath
	// The manager would pass the configuration of the workload cluster.
	endpoint.FilterProvider = func(*rest.Config, *http.Client) (server.Filter, error) {
		client, err := rest.HTTPClientFor(home)
		if err != nil {
			return nil, err
		}
		return filters.WithAuthenticationAndAuthorization(home, client)
	}
	return endpoint
}

// loopback reports whether an address can only be reached from the same host.
func loopback(address string) bool {
	ip := net.ParseIP(address)
	return ip != nil && ip.IsLoopback()
}

// address returns the address of an endpoint. Port 0 turns it off.
func address(options *Options, port int) string {
	if port == 0 {
		return "0"
	}
	return net.JoinHostPort(options.BindAddress, strconv.Itoa(port))
}

// profiles returns the handlers that --enable-profiling adds to the metrics endpoint.
func profiles(options *Options) map[string]http.Handler {
	if !options.Core.EnableProfiling {
		return nil
	}
	handlers := map[string]http.Handler{
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, name := range []string{"allocs", "heap", "block", "goroutine", "threadcreate"} {
		handlers["/debug/pprof/"+name] = pprof.Handler(name)
	}
	return handlers
}
