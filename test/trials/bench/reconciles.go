// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// ownControllers begins the names of the operator's own controllers, unlike those of Karpenter core.
const ownControllers = "capi."

// metricsAddress returns the address of the metrics and profiles of a component; empty if it has none.
func metricsAddress(on *stack.Stack, name string) string {
	for _, component := range on.Components() {
		for _, argument := range component.Command {
			if port, found := strings.CutPrefix(argument, "--metrics-port="); found && component.Name == name {
				return "http://127.0.0.1:" + port
			}
		}
	}
	return ""
}

// reconcilesOf returns how often the operator's own controllers have reconciled since its start.
func reconcilesOf(ctx context.Context, on *stack.Stack) (count float64, err error) {
	families, err := operatorMetrics(ctx, on)
	for _, metric := range families["controller_runtime_reconcile_total"].GetMetric() {
		if lo.ContainsBy(metric.GetLabel(), ofOwnController) {
			count += metric.GetCounter().GetValue()
		}
	}
	return count, err
}

// ofOwnController reports whether a label shows that a metric is of one of the operator's own controllers.
func ofOwnController(label *dto.LabelPair) bool {
	return label.GetName() == "controller" && strings.HasPrefix(label.GetValue(), ownControllers)
}

// operatorMetrics returns the operator's metrics by name.
func operatorMetrics(ctx context.Context, on *stack.Stack) (map[string]*dto.MetricFamily, error) {
	metrics, err := fetch(ctx, metricsAddress(on, stack.Operator)+"/metrics")
	if err != nil {
		return nil, err
	}
	defer metrics.Close() //nolint:errcheck // It is only read.
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the operator: %w", err)
	}
	return families, nil
}

// fetch returns what a process answers, which the caller must close.
func fetch(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, response.Status), response.Body.Close())
	}
	return response.Body, nil
}
