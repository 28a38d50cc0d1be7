// SPDX-License-Identifier: Apache-2.0

package operator

import "testing"

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
