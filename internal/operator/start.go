// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// retryInterval is how often the preflight is repeated until it succeeds.
const retryInterval = 10 * time.Second

// AwaitClusters waits until the operator can start, and returns the client configurations of both clusters. Until then the
// process is alive and not ready, and reports what it waits for. It does not end, because a restart changes nothing, and the
// kubelet would wait longer and longer before the next one.
func AwaitClusters(ctx context.Context, options *Options) (workload, management *rest.Config, err error) {
	ctx = withLogger(options.Core.ToContext(ctx))
	stop, err := serveProbes(ctx, address(options, options.Core.HealthProbePort))
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	found, err := retry(ctx, retryInterval, func() (*configs, error) { return preflight(ctx, options, reportTo(ctx)) })
	if err != nil {
		return nil, nil, err
	}
	return found.workload, found.management, nil
}

// retry repeats an attempt until it succeeds, and logs each problem once, until there is another.
func retry(ctx context.Context, interval time.Duration, attempt func() (*configs, error)) (*configs, error) {
	for last := ""; ; {
		found, err := attempt()
		if err == nil {
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err.Error() != last {
			last = err.Error()
			log.FromContext(ctx).Error(err, "the operator cannot start; it tries again", "interval", interval.String())
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(interval):
		}
	}
}

// serveProbes serves the health probes of a process that is alive and not ready. The manager serves them later.
func serveProbes(ctx context.Context, address string) (stop func(), err error) {
	if address == "0" {
		return func() {}, nil
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("listening for health probes: %w", err)
	}
	return serve(ctx, listener), nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

func serve(ctx context.Context, listener net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the operator cannot start yet; its log has the reason", http.StatusServiceUnavailable)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.FromContext(ctx).Error(err, "serving health probes")
		}
	}()
	return func() { _ = server.Close() }
}
