// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
)

// host describes this machine and the versions of what runs on it, without names and paths.
func host() (string, error) {
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "", err
	}
	system, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", err
	}
	kubernetes, err := kubernetesVersion()
	if err != nil {
		return "", err
	}
	info, _ := debug.ReadBuildInfo()
	versions := build.Of(info)
	t := &table{header: []string{"", ""}}
	t.add("CPU", fmt.Sprintf("%s, %d cores", value(string(cpu), "model name", ":"), runtime.NumCPU()))
	t.add("memory", gibibytes(value(string(memory), "MemTotal", ":")))
	t.add("operating system", fmt.Sprintf("%s, %s/%s", strings.Trim(value(string(system), "PRETTY_NAME", "="), `"`), runtime.GOOS, runtime.GOARCH))
	t.add("Go", strings.TrimPrefix(runtime.Version(), "go"))
	t.add("Karpenter", versions.Karpenter)
	t.add("Cluster API", versions.ClusterAPI)
	t.add("Kubernetes", kubernetes)
	return t.String(), nil
}

// kubernetesVersion returns the version of the stack's kube-apiserver.
func kubernetesVersion() (string, error) {
	out, err := exec.Command("bin/kube-apiserver", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("bin/kube-apiserver --version: %w", err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "Kubernetes "), nil
}

// value returns the first value of a key in lines of keys and values.
func value(text, key, separator string) string {
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(line, separator); found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// gibibytes converts a number of KiB, such as 24643880 kB.
func gibibytes(text string) string {
	kib, err := strconv.ParseFloat(strings.TrimSuffix(text, " kB"), 64)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%.0f GiB", kib/(1<<20))
}
