// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"errors"
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestClearKeepsLogsAndWhatIsNotOurs(t *testing.T) {
	g := NewWithT(t)
	state := folder(t.TempDir())
	g.Expect(state.create()).To(Succeed())
	for _, path := range []string{state.path("logs", "etcd.log"), state.record(), state.kubeconfig(), state.managementKubeconfig()} {
		g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	}
	inner := folder(state.path("demo"))
	g.Expect(inner.create()).To(Succeed())

	g.Expect(state.clear()).To(Succeed())

	entries, err := os.ReadDir(string(state))
	g.Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	g.Expect(names).To(ConsistOf("logs", "demo"))
	g.Expect(state.path("logs", "etcd.log")).To(BeAnExistingFile())
	g.Expect(inner.pids()).To(BeADirectory())
}

func TestLock(t *testing.T) {
	g := NewWithT(t)
	state := folder(t.TempDir())
	first, err := state.lock()
	g.Expect(err).NotTo(HaveOccurred())
	_, err = state.lock()
	var busy *BusyError
	g.Expect(errors.As(err, &busy)).To(BeTrue(), "%v", err)
	g.Expect(first.Close()).To(Succeed())
	again, err := state.lock()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Close()).To(Succeed())
}
