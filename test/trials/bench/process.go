// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// Names under which other processes are listed among those of the stack.
const (
	self = "this program"
	// others are all processes that do not belong to a run, and other virtual machines on the same cores. If they use
	// much, the durations are too long.
	others = "everything else"
)

// ticksPerSecond is the unit of the CPU times in /proc on all architectures of Linux that Go supports.
const ticksPerSecond = 100

// usage is the CPU time, in seconds, that each process has used since its start.
type usage map[string]float64

// usageOf reads the CPU time of each process of a stack, of this one, and of all others.
func usageOf(ctx context.Context, on *stack.Stack) (usage, error) {
	pids := map[string]int{self: os.Getpid()}
	for _, component := range on.Status(ctx) {
		if component.PID == 0 {
			return nil, fmt.Errorf("%s has ended; the last lines of %s:\n%s", component.Name, component.LogFile, component.LogTail(20))
		}
		pids[component.Name] = component.PID
	}
	used := usage{}
	for name, pid := range pids {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			return nil, err
		}
		if used[name], err = cpuSeconds(string(stat)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, err
	}
	all, err := busySeconds(string(stat))
	used[others] = all - used.total()
	return used, err
}

// since returns the CPU time that each process has used since an earlier reading.
func (u usage) since(earlier usage) usage {
	used := usage{}
	for name, seconds := range u {
		used[name] = seconds - earlier[name]
	}
	return used
}

// total returns the CPU time of the processes of the stack, and of this one.
func (u usage) total() float64 {
	total := 0.0
	for name, seconds := range u {
		if name != others {
			total += seconds
		}
	}
	return total
}

// The processes are calm if they use less than this part of a core during a sample. With many Nodes they never do,
// because of heartbeats.
const (
	calmCores  = 0.3
	calmSample = 2 * time.Second
	calmWithin = 20 * time.Second
)

// calm waits until the processes of the stack do nearly nothing, but only for a limited time.
func (t *trial) calm(ctx context.Context) error {
	began, sampled := time.Now(), time.Now()
	last, err := usageOf(ctx, t.Stack)
	if err != nil {
		return err
	}
	return t.Await(ctx, 2*calmWithin, "the processes to be calm", func(ctx context.Context) (bool, string, error) {
		period := time.Since(sampled)
		if period < calmSample {
			return false, "", nil
		}
		now, err := usageOf(ctx, t.Stack)
		if err != nil {
			return false, "", err
		}
		cores := now.since(last).total() / period.Seconds()
		last, sampled = now, time.Now()
		return cores < calmCores || time.Since(began) > calmWithin, fmt.Sprintf("they use %.1f cores", cores), nil
	})
}

// cpuSeconds reads the CPU time in user and kernel mode from a line of /proc/PID/stat. The second field is the name of
// the program in parentheses, which can contain spaces and parentheses; utime and stime are the fields 14 and 15.
func cpuSeconds(stat string) (float64, error) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("unexpected content of /proc/PID/stat: %q", stat)
	}
	return sumOfTicks(fields[11:13])
}

// busySeconds reads the CPU time of all processes from the first line of /proc/stat: user, nice and system, then idle
// and iowait, which do not count, then irq, softirq and what other virtual machines have used.
func busySeconds(stat string) (float64, error) {
	fields := strings.Fields(stat)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("unexpected content of /proc/stat: %q", stat)
	}
	return sumOfTicks(slices.Concat(fields[1:4], fields[6:9]))
}

func sumOfTicks(fields []string) (float64, error) {
	ticks := 0
	for _, field := range fields {
		count, err := strconv.Atoi(field)
		if err != nil {
			return 0, fmt.Errorf("unexpected CPU time in /proc: %w", err)
		}
		ticks += count
	}
	return float64(ticks) / ticksPerSecond, nil
}

// memory is the memory of a process in MiB.
type memory struct {
	RSS  float64 `json:"rss"`
	Most float64 `json:"most"`
}

// memoryOf reads the memory of a component.
func memoryOf(ctx context.Context, on *stack.Stack, name string) (memory, error) {
	for _, component := range on.Status(ctx) {
		if component.Name == name {
			status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(component.PID), "status"))
			return parseMemory(string(status)), err
		}
	}
	return memory{}, nil
}

// parseMemory reads the memory from /proc/PID/status, which has it in KiB.
func parseMemory(status string) memory {
	var m memory
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		size, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			m.RSS = size / 1024
		case "VmHWM:":
			m.Most = size / 1024
		}
	}
	return m
}
