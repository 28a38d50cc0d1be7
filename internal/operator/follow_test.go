// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// handled is a transport that calls a handler, without a network.
type handled struct{ http.Handler }

func (h handled) RoundTrip(request *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// One request fails, and then nobody sends another one, because Guard fails.
func TestInterruptionEndsWithoutOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		var asked atomic.Int32
		to := connection.New(connection.Management, "test", clock.RealClock{}, clock.RealClock{})
		client := &http.Client{Transport: to.Transport(handled{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if failing.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})})}
		ask := func(ctx context.Context) error {
			asked.Add(1)
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://test/api", nil)
			if err != nil {
				return err
			}
			response, err := client.Do(request)
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}
		to.Filled()
		go askWhileInterrupted(t.Context(), to, askEvery, ask)
		time.Sleep(time.Minute)
		if asked.Load() > 0 {
			t.Errorf("without an interruption, the cluster is asked %d times", asked.Load())
		}

		failing.Store(true)
		if err := ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		if to.Err() == nil {
			t.Fatal("an error of the server does not interrupt the connection")
		}
		time.Sleep(10 * askEvery)
		if to.Err() == nil {
			t.Error("the interruption ends while requests fail")
		}
		failing.Store(false)
		time.Sleep(askEvery)
		synctest.Wait()
		if err := to.Err(); err != nil {
			t.Errorf("the cluster answers, but: %v", err)
		}
	})
}
