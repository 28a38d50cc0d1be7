// SPDX-License-Identifier: Apache-2.0

package operator

import "testing"

func TestNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		environment map[string]string
		args        []string
		want        string // where the lease is
	}{
		"not given, as in a Pod":         {want: ""},
		"the flag":                       {args: []string{"--namespace=a"}, want: "a"},
		"the variable of the Deployment": {environment: map[string]string{"SYSTEM_NAMESPACE": "a"}, want: "a"},
		"the flag over the variable":     {environment: map[string]string{"SYSTEM_NAMESPACE": "a"}, args: []string{"--namespace=b"}, want: "b"},
		"the lease is elsewhere":         {args: []string{"--namespace=a", "--leader-election-namespace=b"}, want: "b"},
		"elsewhere, by the variable": {
			environment: map[string]string{"LEADER_ELECTION_NAMESPACE": "b"}, args: []string{"--namespace=a"}, want: "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"SYSTEM_NAMESPACE", "LEADER_ELECTION_NAMESPACE"} {
				t.Setenv(variable, tc.environment[variable])
			}
			options, err := ParseOptions(tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := options.Core.LeaderElectionNamespace; got != tc.want {
				t.Errorf("the lease is in %q, want %q", got, tc.want)
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
