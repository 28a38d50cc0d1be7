// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Attempts are made in intervals, and each problem is reported once until there is another.
func TestRetryReportsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		ctx := log.IntoContext(t.Context(), funcr.NewJSON(func(line string) { reports = append(reports, line) }, funcr.Options{}))
		outcomes := []string{"no file", "no file", "no file", "no right", "no right", "no file", ""}
		start := time.Now()
		var at []time.Duration
		want := &configs{}
		got, err := retry(ctx, retryInterval, func() (*configs, error) {
			at = append(at, time.Since(start))
			outcome := outcomes[0]
			if outcomes = outcomes[1:]; outcome != "" {
				return nil, errors.New(outcome)
			}
			return want, nil
		})
		if err != nil || got != want {
			t.Errorf("got %v and %v", got, err)
		}
		if diff := cmp.Diff([]time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second, 50 * time.Second, time.Minute}, at); diff != "" {
			t.Errorf("the times of attempts (-want +got):\n%s", diff)
		}
		line := func(problem string) string {
			return `{"logger":"","msg":"the operator cannot start; it tries again","error":"` + problem + `","interval":"10s"}`
		}
		if diff := cmp.Diff([]string{line("no file"), line("no right"), line("no file")}, reports); diff != "" {
			t.Errorf("the reports (-want +got):\n%s", diff)
		}
	})
}

// The process ends when it is stopped, also while it waits for the next attempt or for an answer. That is no problem to report.
func TestRetryEnds(t *testing.T) {
	for name, attempt := range map[string]func(context.Context) error{
		"between two attempts": func(context.Context) error { return errors.New("no file") },
		"during an attempt":    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				start := time.Now()
				_, err := retry(ctx, retryInterval, func() (*configs, error) { return nil, attempt(ctx) })
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 15*time.Second {
					t.Errorf("it ends after %s with %v", time.Since(start), err)
				}
			})
		})
	}
}
