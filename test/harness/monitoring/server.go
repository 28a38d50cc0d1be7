// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// kept is for how long a test can have run.
const kept = time.Hour

// Server is a Prometheus that runs.
type Server struct {
	// LogFile is the file with its output.
	LogFile string

	api     prometheusv1.API
	process *exec.Cmd
}

// Start starts Prometheus in a folder, on a port of 127.0.0.1. It scrapes the target and evaluates the rules until the context ends or
// Stop is called.
func Start(ctx context.Context, dir string, port int, target Target, rules []byte) (*Server, error) {
	binary, err := charts.Tool("prometheus")
	if err != nil {
		return nil, err
	}
	if err := write(dir, target, rules); err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	server, err := newServer("http://" + address)
	if err != nil {
		return nil, err
	}
	server.LogFile = filepath.Join(dir, logFile)
	log, err := os.Create(server.LogFile)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // The process has it open.
	server.process = exec.CommandContext(ctx, binary,
		"--config.file="+filepath.Join(dir, configFile), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	server.process.Dir, server.process.Stdout, server.process.Stderr = dir, log, log
	if err := server.process.Start(); err != nil {
		return nil, err
	}
	return server, nil
}

// write writes the files of Prometheus into its folder.
func write(dir string, target Target, rules []byte) error {
	config, err := target.config()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{configFile: config, rulesFile: rules, tokenFile: []byte(target.Token)} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return err
}

// newServer returns a server that is reached by its URL.
func newServer(url string) (*Server, error) {
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		return nil, err
	}
	return &Server{api: prometheusv1.NewAPI(client)}, nil
}

// Stop ends Prometheus, and returns when it has ended.
func (s *Server) Stop() {
	_ = s.process.Process.Kill() // It can have ended.
	_ = s.process.Wait()         // It was killed.
}

// Answers returns which of some queries have a number now.
func (s *Server) Answers(ctx context.Context, queries []string) (sets.Set[string], error) {
	answered := sets.New[string]()
	for _, query := range queries {
		value, _, err := s.api.Query(ctx, query, time.Time{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", query, err)
		}
		if hasNumber(value) {
			answered.Insert(query)
		}
	}
	return answered, nil
}

// hasNumber reports whether a result has a series with a number. A quantile of nothing is none.
func hasNumber(result model.Value) bool {
	vector, _ := result.(model.Vector)
	for _, sample := range vector {
		if !math.IsNaN(float64(sample.Value)) {
			return true
		}
	}
	return false
}

// Selected returns which of some selectors have ever had series.
func (s *Server) Selected(ctx context.Context, selectors []string) (sets.Set[string], error) {
	selected, now := sets.New[string](), time.Now()
	for _, selector := range selectors {
		series, _, err := s.api.Series(ctx, []string{selector}, now.Add(-kept), now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", selector, err)
		}
		if len(series) > 0 {
			selected.Insert(selector)
		}
	}
	return selected, nil
}

// Active returns the names of the alerts whose condition holds.
func (s *Server) Active(ctx context.Context) (sets.Set[string], error) {
	return s.alerts(ctx, "ALERTS")
}

// EverActive returns the names of the alerts whose condition has ever held.
func (s *Server) EverActive(ctx context.Context) (sets.Set[string], error) {
	return s.alerts(ctx, fmt.Sprintf("last_over_time(ALERTS[%s])", model.Duration(kept)))
}

// alerts returns the names of the alerts that a query selects.
func (s *Server) alerts(ctx context.Context, query string) (sets.Set[string], error) {
	result, _, err := s.api.Query(ctx, "count by (alertname) ("+query+")", time.Time{})
	if err != nil {
		return nil, err
	}
	vector, is := result.(model.Vector)
	if !is {
		return nil, fmt.Errorf("got a %s of alerts", result.Type())
	}
	found := sets.New[string]()
	for _, sample := range vector {
		found.Insert(string(sample.Metric[model.AlertNameLabel]))
	}
	return found, nil
}

// Failed returns the alerts that Prometheus could not evaluate, and why.
func (s *Server) Failed(ctx context.Context) ([]string, error) {
	rules, err := s.api.Rules(ctx)
	if err != nil {
		return nil, err
	}
	var failed []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if alert, is := rule.(prometheusv1.AlertingRule); is && alert.Health != prometheusv1.RuleHealthGood {
				failed = append(failed, fmt.Sprintf("%s: %s %s", alert.Name, alert.Health, alert.LastError))
			}
		}
	}
	return failed, nil
}
