// SPDX-License-Identifier: Apache-2.0

package bench

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

func TestBusySeconds(t *testing.T) {
	const stat = "cpu  100 20 30 4000 500 6 35 9 0 0\ncpu0 50 10 15 2000 250 3 22 4 0 0\n"
	if got, err := busySeconds(stat); err != nil || got != 2 {
		t.Errorf("got %v and %v, want 2 s", got, err)
	}
	if _, err := busySeconds("btime 1"); err == nil {
		t.Error("got no error for a line without times")
	}
	used := usage{self: 1, others: 100}
	if got := used.total(); got != 1 {
		t.Errorf("got %v, want a total without other processes", got)
	}
}

// The work takes long enough to be measured, and so short that no run becomes longer.
func TestWork(t *testing.T) {
	took, err := work()
	if err != nil || took < 0.01 || took > 30 {
		t.Errorf("got %.3f s and error %v", took, err)
	}
	t.Logf("the work took %.3f s", took)
}
