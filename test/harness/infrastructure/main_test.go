// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestParseFlags(t *testing.T) {
	tests := map[string]struct {
		env     string
		args    []string
		want    flags
		wantErr string
	}{
		"defaults": {
			args: []string{"--kubeconfig", "m"},
			want: flags{kubeconfig: "m", workloadKubeconfig: "m", healthAddr: "127.0.0.1:9441", metricsAddr: "0", concurrency: 50},
		},
		"kubeconfig of the environment": {
			env:  "e",
			want: flags{kubeconfig: "e", workloadKubeconfig: "e", healthAddr: "127.0.0.1:9441", metricsAddr: "0", concurrency: 50},
		},
		"all set": {
			env:  "e",
			args: []string{"--kubeconfig=m", "--workload-kubeconfig=w", "--health-addr=0", "--metrics-addr=[::1]:0", "--concurrency=1"},
			want: flags{kubeconfig: "m", workloadKubeconfig: "w", healthAddr: "0", metricsAddr: "[::1]:0", concurrency: 1},
		},
		"no kubeconfig":              {wantErr: "--kubeconfig"},
		"unknown flag":               {args: []string{"--foo"}, wantErr: "foo"},
		"an argument":                {env: "e", args: []string{"foo"}, wantErr: "foo"},
		"no concurrency":             {env: "e", args: []string{"--concurrency=0"}, wantErr: "--concurrency"},
		"health on all addresses":    {env: "e", args: []string{"--health-addr=:9441"}, wantErr: "--health-addr"},
		"metrics on another address": {env: "e", args: []string{"--metrics-addr=10.0.0.1:80"}, wantErr: "--metrics-addr"},
		"an address without a port":  {env: "e", args: []string{"--metrics-addr=127.0.0.1"}, wantErr: "--metrics-addr"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.env)
			got, err := parseFlags(tc.args, &zap.Options{})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error = %v, want one of %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, *got, cmp.AllowUnexported(flags{})); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunSaysWhichKubeconfigIsMissing(t *testing.T) {
	err := run(t.Context(), []string{"--kubeconfig", t.TempDir() + "/none"})
	if err == nil || !strings.Contains(err.Error(), "management cluster") {
		t.Errorf("error = %v, want one about the management cluster", err)
	}
}
