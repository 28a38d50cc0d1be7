// SPDX-License-Identifier: Apache-2.0

//go:build install

package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inRoot is the variable that makes the test's binary the helper that changes to the image's root.
const inRoot = "IMAGE_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(inRoot); root != "" {
		fmt.Fprintf(os.Stderr, "cannot run in the image: %v\n", enter(root, os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// enter runs a program of the image in place of this one, on a read-only root and without capabilities. It returns only if
// that fails.
func enter(root string, args []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	var found unix.Statfs_t
	if err := unix.Statfs(root, &found); err != nil {
		return err
	}
	// A user namespace may not clear these flags.
	kept := uintptr(found.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|kept, ""); err != nil {
		return fmt.Errorf("making the root read-only: %w", err)
	}
	if err := unix.Chroot(root); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := os.WriteFile("/tmp/file", nil, 0o600); err == nil {
		return fmt.Errorf("the root can be written to")
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	return unix.Exec(args[0], args, []string{"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "KUBECONFIG=/kubeconfig"})
}

// command returns the command that runs a program of the image as its user, in a user namespace of its own.
func command(t *testing.T, root string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = []string{inRoot + "=" + root}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT},
	}
	return c
}

// permission is what to do if the helper may not do what it must.
const permission = "the test needs user namespaces: run it as root, or with kernel.apparmor_restrict_unprivileged_userns=0"

func TestVersion(t *testing.T) {
	root := t.TempDir()
	unpack(t, filepath.Join("..", "..", "bin", "image.tar"), runtime.GOARCH, root)
	for _, args := range [][]string{{"/karpenter-capi", "--version"}, {"/kubectl-karpenter_capi", "--help"}} {
		said, err := command(t, root, args...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v (%s)\n%s", args, err, permission, said)
		}
		if len(said) == 0 {
			t.Errorf("%s printed nothing", args)
		}
	}
}

// The kubeconfig has no CA certificate, so the operator takes those of the image.
func TestStart(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		http.Error(w, "this is not an API server", http.StatusTeapot)
	}))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, tc := range map[string]struct {
		added []byte // to the CA certificates of the image
		want  string
		asked bool
	}{
		"the server's CA is unknown":      {want: "certificate signed by unknown authority"},
		"the server's CA is in the image": {added: authority, want: "the operator cannot start", asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			root := t.TempDir()
			unpack(t, filepath.Join("..", "..", "bin", "image.tar"), runtime.GOARCH, root)
			bundle := filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt")
			if err := os.WriteFile(bundle, append(certificates(), tc.added...), 0o600); err != nil {
				t.Fatal(err)
			}
			kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: t}}]}`, server.URL)
			if err := os.WriteFile(filepath.Join(root, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
				t.Fatal(err)
			}
			c := command(t, root, "/karpenter-capi",
				"--cluster-name=test", "--cluster-namespace=default", "--health-probe-port=0", "--metrics-port=0")
			if said := await(t, c, tc.want); said != "" {
				t.Errorf("the operator did not say %q (%s):\n%s", tc.want, permission, said)
			}
			if asked := requests.Load() > 0; asked != tc.asked {
				t.Errorf("got a request: %t, want %t", asked, tc.asked)
			}
		})
	}
}

// await runs a command until it prints the text, stops it, and checks that it ends well. It returns what the command printed
// if it ended without the text.
func await(t *testing.T, c *exec.Cmd, text string) string {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	c.Stdout, c.Stderr = writer, writer
	if err := c.Start(); err != nil {
		t.Fatalf("%v: %s", err, permission)
	}
	_ = writer.Close()
	// A command that says nothing of the kind ends with this.
	timer := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	var said strings.Builder
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !strings.Contains(lines.Text(), text) {
			continue
		}
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("the operator did not stop well: %v", err)
		}
		return ""
	}
	_ = c.Wait()
	return said.String()
}
