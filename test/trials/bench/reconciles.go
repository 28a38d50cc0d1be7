// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, metricsAddress(on, stack.Operator)+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // It is only read.
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("reading the metrics of the operator: %w", err)
	}
	for _, metric := range families["controller_runtime_reconcile_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "controller" && strings.HasPrefix(label.GetValue(), ownControllers) {
				count += metric.GetCounter().GetValue()
			}
		}
	}
	return count, nil
}
