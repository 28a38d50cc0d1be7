// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"
)

func TestNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		environment    map[string]string
		args           []string
		lease, cluster string // their namespaces
	}{
		"not set, as in a Pod":       {},
		"set by the Deployment":      {environment: map[string]string{"SYSTEM_NAMESPACE": "a"}, lease: "a"},
		"the lease by a flag":        {environment: map[string]string{"SYSTEM_NAMESPACE": "a"}, args: []string{"--leader-election-namespace=b"}, lease: "b"},
		"the lease by a variable":    {environment: map[string]string{"SYSTEM_NAMESPACE": "a", "LEADER_ELECTION_NAMESPACE": "b"}, lease: "b"},
		"the Cluster":                {args: []string{"--cluster-namespace=a"}, cluster: "a"},
		"the Cluster, by contract":   {args: []string{"--namespace=a"}, cluster: "a"},
		"the Cluster, by a variable": {environment: map[string]string{"CLUSTER_NAMESPACE": "a"}, cluster: "a"},
		"all, by contract":           {args: []string{"--namespace="}},
		"the flag over the variable": {environment: map[string]string{"CLUSTER_NAMESPACE": "a"}, args: []string{"--namespace=b"}, cluster: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"SYSTEM_NAMESPACE", "LEADER_ELECTION_NAMESPACE", "CLUSTER_NAMESPACE"} {
				t.Setenv(variable, tc.environment[variable])
			}
			options, err := ParseOptions(tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := options.Core.LeaderElectionNamespace; got != tc.lease {
				t.Errorf("the lease is in %q, want %q", got, tc.lease)
			}
			if got := options.ClusterNamespace; got != tc.cluster {
				t.Errorf("the Cluster is in %q, want %q", got, tc.cluster)
			}
		})
	}
}

func TestInterruptionSignals(t *testing.T) {
	for name, tc := range map[string]struct {
		environment, flag string
		want              int
		problem           string
	}{
		"a variable":               {environment: "taint:a,condition:B=True", want: 2},
		"the flag":                 {flag: "none"},
		"the flag over a variable": {environment: "none", flag: "taint:a", want: 1},
		"an invalid variable":      {environment: "taint:a b", problem: "--interruption-signals: interruption signal"},
		"an invalid flag":          {flag: "spot", problem: "--interruption-signals: interruption signal"},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			if tc.flag != "" {
				args = append(args, "--interruption-signals="+tc.flag)
			}
			if tc.environment != "" {
				t.Setenv("INTERRUPTION_SIGNALS", tc.environment)
			}
			options, err := ParseOptions(args...)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("got error %v, want one with %q", err, tc.problem)
				}
				return
			}
			if err != nil || len(options.InterruptionSignals) != tc.want {
				t.Errorf("got %v and error %v, want %d signals", options, err, tc.want)
			}
		})
	}
	options, err := ParseOptions()
	if err != nil || len(options.InterruptionSignals) == 0 {
		t.Errorf("got %v and error %v, want the default signals", options, err)
	}
}

func TestVersionFlag(t *testing.T) {
	for _, args := range [][]string{{}, {"--version"}} {
		options, err := ParseOptions(args...)
		if err != nil {
			t.Fatal(err)
		}
		if options.PrintVersion != (len(args) > 0) {
			t.Errorf("%v: PrintVersion is %t", args, options.PrintVersion)
		}
	}
}

func TestParseOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args      []string
		wantError string
	}{
		"the operator's":   {args: []string{"--cluster-name=x", "--cluster-namespace=y", "--cluster-api-kubeconfig=/z", "--bind-address=127.0.0.1"}},
		"core's":           {args: []string{"--metrics-port=0", "--feature-gates=NodeOverlay=true", "--log-level=debug"}},
		"an unknown flag":  {args: []string{"--bogus"}, wantError: "flag provided but not defined: -bogus"},
		"an argument":      {args: []string{"run"}, wantError: `unexpected argument "run"`},
		"a bad core value": {args: []string{"--log-level=loud"}, wantError: `invalid LOG_LEVEL "loud"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseOptions(tc.args...)
			if tc.wantError == "" && err != nil || tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError)) {
				t.Errorf("got %v, want %q", err, tc.wantError)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	if got := address(&Options{BindAddress: "127.0.0.1"}, 8080); got != "127.0.0.1:8080" {
		t.Errorf("got %s", got)
	}
	if got := address(&Options{}, 8080); got != ":8080" {
		t.Errorf("got %s", got)
	}
	if got := address(&Options{BindAddress: "127.0.0.1"}, 0); got != "0" {
		t.Errorf("got %s, want the endpoint to be off", got)
	}
}
