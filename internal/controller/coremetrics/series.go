// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// series is one series of a gauge.
type series struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	// grows reports whether the value is a duration in seconds, which grows after it is set.
	grows bool

	mu    sync.Mutex
	value float64
	since time.Time
}

func (s *series) set(value float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.since = value, time.Now()
}

// Desc implements prometheus.Metric.
func (s *series) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *series) Write(metric *dto.Metric) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	value := s.value
	if s.grows {
		value += time.Since(s.since).Seconds()
	}
	metric.Label, metric.Gauge = s.labels, &dto.Gauge{Value: &value}
	return nil
}
