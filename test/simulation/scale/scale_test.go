// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkReconcile measures one reconcile of a scalable resource.
func BenchmarkReconcile(b *testing.B) {
	for _, state := range slices.Sorted(maps.Keys(states)) {
		for _, n := range []int{100, 1000, 5000} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(state, " ", "_"), n), func(b *testing.B) {
				reconciler := newReconciler(state, n)
				b.ReportAllocs()
				for b.Loop() {
					run(b, reconciler)
				}
			})
		}
	}
}

// perClaim is how many allocations a reconcile may need for each claim. One is in the index of
// linked Machines.
const perClaim = 3

// TestReconcileAllocatesLittle fails if a reconcile that writes nothing allocates memory for each claim
// repeatedly, such as for a set of its conditions. Garbage collection is the largest cost of a scalable
// resource with many claims.
func TestReconcileAllocatesLittle(t *testing.T) {
	for _, state := range []string{"settled", "no Machines yet", "leaving"} {
		t.Run(state, func(t *testing.T) {
			// With many claims, what does not depend on their number hardly counts.
			reconciler := newReconciler(state, many)
			if got := testing.AllocsPerRun(5, func() { run(t, reconciler) }) / many; got > perClaim {
				t.Errorf("got %.1f allocations for each claim, want %d at most", got, perClaim)
			} else {
				t.Logf("%.1f allocations for each claim", got)
			}
		})
	}
}

// few and many are the numbers of claims for which statements are counted.
const few, many = 200, 1600

// atMost is by how much more often a block of statements is executed for many claims than for few, in
// relation to their numbers. It leaves room for sorting; a loop in a loop has many/few, which is 8.
const atMost = 3

// counted are the packages whose statements are counted. A loop of a library is counted if it calls a
// function of these packages, such as to compare objects.
const counted = "github.com/karpenter-capi/karpenter-capi/internal/..."

// TestReconcileIsLinear executes a reconcile of few and of many claims in each state, in a test binary
// that counts how often each statement is executed. The numbers do not depend on the machine.
func TestReconcileIsLinear(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "scale.test")
	if out, err := exec.Command("go", "test", "-c", "-trimpath", "-covermode=count", "-coverpkg="+counted, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the test: %v\n%s", err, out)
	}
	for state := range states {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			before, after := execute(t, binary, state, few), execute(t, binary, state, many)
			worst := 0.0
			for block, times := range after {
				// What is executed less often than once for each claim is not worth a look.
				if times < many || before[block] == 0 {
					continue
				}
				growth := float64(times) / float64(before[block]) / (many / few)
				worst = max(worst, growth)
				if growth > atMost {
					t.Errorf("%s executes %d statements for %d claims and %d for %d: use an index or a set instead of a loop in a loop", block, before[block], few, times, many)
				}
			}
			t.Logf("the worst block grows by %.2f times the number of claims", worst)
		})
	}
}

// execute reconciles n claims in a state, and returns how many statements of each block are executed.
func execute(t *testing.T, binary, state string, n int) map[string]int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	command := exec.Command(binary, "-test.run=^TestOneReconcile$", "-test.coverprofile="+profile)
	command.Env = append(os.Environ(), "SCALE_STATE="+state, "SCALE_N="+strconv.Itoa(n))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		// path/file.go:12.34,56.2 3 4: the block, its statements, and how often it was executed.
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue
		}
		statements, _ := strconv.Atoi(fields[1])
		times, _ := strconv.Atoi(fields[2])
		blocks[fields[0]] += statements * times
	}
	return blocks
}

// TestOneReconcile is what TestReconcileIsLinear executes.
func TestOneReconcile(t *testing.T) {
	state := os.Getenv("SCALE_STATE")
	if state == "" {
		t.Skip("TestReconcileIsLinear calls this test")
	}
	n, err := strconv.Atoi(os.Getenv("SCALE_N"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, newReconciler(state, n))
}
