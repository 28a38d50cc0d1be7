// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/lanes"
)

type answering struct{ http.RoundTripper }

func (answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// A request whose time ends while it waits for others says nothing about the API server.
func TestWaitingIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := connection.New(connection.Workload, "https://workload", clock.RealClock{}, connection.Wall{})
		to.Filled()
		transport, err := rest.TransportFor(configure(&rest.Config{Transport: answering{}}, to, lanes.New(), &Options{}))
		if err != nil {
			t.Fatal(err)
		}
		for sent := 0; err == nil; sent++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			request, _ := http.NewRequestWithContext(ctx, http.MethodPatch, "https://workload/apis/karpenter.sh/v1/nodeclaims/c", nil)
			_, err = transport.RoundTrip(request) //nolint:bodyclose // the requests stay in flight
			if sent > 1000 {
				t.Fatal("there is no limit")
			}
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := to.Err(); err != nil {
			t.Error(err)
		}
	})
}
