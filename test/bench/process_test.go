// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCPUSeconds(t *testing.T) {
	const stat = "42 (a (strange) name) S 1 42 42 0 -1 4194560 9 0 0 0 250 50 7 8 20 0 9 0 123 456 789\n"
	got, err := cpuSeconds(stat)
	if err != nil || got != 3 {
		t.Errorf("got %v and %v, want 3 s", got, err)
	}
	if _, err := cpuSeconds("42 (ended)"); err == nil {
		t.Error("got no error for a line without times")
	}
}

func TestParseMemory(t *testing.T) {
	const status = "Name:\toperator\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\nThreads:\t9\n"
	if diff := cmp.Diff(memory{RSS: 100, Most: 200}, parseMemory(status)); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
}
