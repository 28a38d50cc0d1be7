// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"regexp"

	"sigs.k8s.io/yaml"
)

// The files of Prometheus in its folder.
const (
	configFile = "prometheus.yaml"
	rulesFile  = "rules.yaml"
	tokenFile  = "token"
	logFile    = "prometheus.log"
)

// interval is how often Prometheus scrapes the operator and evaluates the alerts. A scrape may take as long.
const interval = "2s"

// Target is an operator that Prometheus scrapes.
type Target struct {
	// Namespace and Job are the labels by which the chart's queries select its series.
	Namespace, Job string
	// Address is the host and the port of its metrics endpoint. The operator signs the certificate itself.
	Address string
	// Token gives the right to get /metrics.
	Token string
}

// config returns the configuration of Prometheus, which does what the chart's ServiceMonitor asks for.
func (t Target) config() ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": interval, "evaluation_interval": interval},
		"rule_files": []string{rulesFile},
		"scrape_configs": []map[string]any{{
			"job_name":      t.Job,
			"scheme":        "https",
			"authorization": map[string]any{"credentials_file": tokenFile},
			"tls_config":    map[string]any{"insecure_skip_verify": true},
			"static_configs": []map[string]any{{
				"targets": []string{t.Address}, "labels": map[string]string{"namespace": t.Namespace, "pod": "operator"},
			}},
		}},
	})
}

// variable is a variable in the query of a dashboard.
var variable = regexp.MustCompile(`\$\w+`)

// Fill replaces the variables in the query of a dashboard, as Grafana does. It fails if the query has others than those of a target.
func (t Target) Fill(query string) (string, error) {
	var err error
	filled := variable.ReplaceAllStringFunc(query, func(name string) string {
		switch name {
		case "$namespace":
			return t.Namespace
		case "$job":
			return t.Job
		}
		err = fmt.Errorf("%s has the unknown variable %s", query, name)
		return name
	})
	return filled, err
}
