// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// conditions is the controller that exports the conditions of templates, as the operator runs it.
// It registers its metrics when it is created, once in a process.
var conditions = sync.OnceValue(func() func(t *testing.T, templates ...client.Object) {
	var reader client.Client
	controller := status.NewController[*v1alpha1.KarpenterMachineTemplate](&latest{of: &reader}, record.NewFakeRecorder(100))
	return func(t *testing.T, templates ...client.Object) {
		t.Helper()
		reader = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(templates...).Build()
		for _, template := range templates {
			if _, err := controller.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(template)}); err != nil {
				t.Fatal(err)
			}
		}
	}
})

// alertsOf returns the chart's alerts, with an alert of the user as the last one.
func alertsOf(t *testing.T) []Alert {
	t.Helper()
	values := MonitoringValues()
	values["prometheusRule"] = Values{"enabled": true, "additionalRules": []Values{{"alert": "Mine", "expr": "vector(1)"}}}
	return monitoringOf(t, values).Alerts
}

// monitoringOf returns what the chart has for Prometheus and Grafana.
func monitoringOf(t *testing.T, values Values) *Monitoring {
	t.Helper()
	found, err := MonitoringOf(render(t, Operator, values))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Each condition of a template that is False and has an alert makes exactly that alert fire.
func TestAlertsOnConditions(t *testing.T) {
	alerts := alertsOf(t)
	firing := func(template string) []string {
		var found []string
		for _, alert := range alerts {
			selector := regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`).FindStringSubmatch(alert.Expr)
			if selector != nil && slices.ContainsFunc(series(t, selector[1]), func(labels map[string]string) bool {
				return labels["name"] == template && matches(t, labels, selector[2])
			}) {
				found = append(found, alert.Alert)
			}
		}
		return found
	}
	template := func(name, condition string) client.Object {
		template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, other := range []string{
			v1alpha1.ConditionClusterReady, v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady, v1alpha1.ConditionInstanceTypesReady,
			v1alpha1.ConditionOfferingsValid, v1alpha1.ConditionNodesTainted, v1alpha1.ConditionCapacityAccurate,
			v1alpha1.ConditionMachinesProgressing, v1alpha1.ConditionRolloutProgressing,
		} {
			template.StatusConditions().SetTrue(other)
		}
		if condition != "" {
			template.StatusConditions().SetFalse(condition, "Test", "it is False")
		}
		return template
	}
	for condition, want := range map[string][]string{
		"":                                    nil,
		v1alpha1.ConditionClusterReady:        {"KarpenterCAPITemplateNotReady"},
		v1alpha1.ConditionOfferingsValid:      {"KarpenterCAPIOfferingsInvalid"},
		v1alpha1.ConditionNodesTainted:        {"KarpenterCAPINodesNotTainted"},
		v1alpha1.ConditionCapacityAccurate:    {"KarpenterCAPICapacityInaccurate"},
		v1alpha1.ConditionMachinesProgressing: {"KarpenterCAPIMachinesNotProgressing"},
		v1alpha1.ConditionRolloutProgressing:  {"KarpenterCAPIRolloutStopped"},
	} {
		t.Run(condition, func(t *testing.T) {
			name := "not-" + strings.ToLower(condition)
			conditions()(t, template(name, condition))
			if diff := cmp.Diff(want, firing(name)); diff != "" {
				t.Errorf("alerts (-want +got):\n%s", diff)
			}
			conditions()(t, template(name, ""))
			if got := firing(name); len(got) > 0 {
				t.Errorf("%v still fire when all conditions are True", got)
			}
		})
	}
}

// matches reports whether labels match a selector, except for those of the scraped Pod.
func matches(t *testing.T, labels map[string]string, selector string) bool {
	t.Helper()
	for _, matcher := range regexp.MustCompile(`([a-z_]+)(!?=)"([^"]*)"`).FindAllStringSubmatch(selector, -1) {
		if key := matcher[1]; key != "namespace" && key != "job" && (labels[key] == matcher[3]) != (matcher[2] == "=") {
			return false
		}
	}
	return true
}

// series returns the labels of each series of a metric that the operator exports now.
func series(t *testing.T, metric string) []map[string]string {
	t.Helper()
	families, err := metrics.Registry.(prometheus.Gatherer).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []map[string]string
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, sample := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range sample.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			found = append(found, labels)
		}
	}
	return found
}

// latest reads from a client that can be replaced.
type latest struct {
	client.Client
	of *client.Client
}

func (l *latest) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return (*l.of).Get(ctx, key, object, options...)
}
