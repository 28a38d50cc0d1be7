// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// becomeEnv names the program that replaces this one.
const becomeEnv = "INTEGRATION_BECOME"

// TestMain makes this process end with its parent, and executes the program that endsWithParent requests.
func TestMain(m *testing.M) {
	path := os.Getenv(becomeEnv)
	signal := syscall.SIGTERM // Ginkgo stops what it has started
	if path != "" {
		signal = syscall.SIGKILL
	}
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(signal), 0); err != 0 {
		fmt.Fprintln(os.Stderr, "prctl:", err)
		os.Exit(1)
	}
	if path != "" {
		err := syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ())
		fmt.Fprintln(os.Stderr, path+":", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// endsWithParent returns a program that runs the one at the given path, and does not outlive this process,
// however that ends: a test that has timed out or was killed does not clean up.
func (e *environment) endsWithParent(path string) string {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	path, err = filepath.Abs(path)
	Expect(err).NotTo(HaveOccurred())
	script := filepath.Join(e.logs, filepath.Base(path))
	// Garbage collection is a fifth of an API server's work, unless it can use more memory.
	Expect(os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexport GOGC=off GOMEMLIMIT=1200MiB %s='%s'\nexec '%s' \"$@\"\n", becomeEnv, path, self), 0o700)).To(Succeed())
	return script
}
