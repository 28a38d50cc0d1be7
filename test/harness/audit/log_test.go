// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines of a log.
const (
	list       = `{"stage":"ResponseComplete","verb":"list","userAgent":"karpenter-capi/v1","objectRef":{"resource":"nodes"},"responseStatus":{"code":200}}` + "\n"
	lease      = `{"stage":"ResponseComplete","verb":"update","userAgent":"karpenter-capi/v1","objectRef":{"resource":"leases","name":"l"},"responseStatus":{"code":200}}` + "\n"
	status     = `{"stage":"ResponseComplete","verb":"patch","userAgent":"karpenter-capi/v1","objectRef":{"resource":"nodeclaims","subresource":"status","name":"a"},"responseStatus":{"code":200}}` + "\n"
	conflict   = `{"stage":"ResponseComplete","verb":"patch","userAgent":"karpenter-capi/v1","objectRef":{"resource":"machines","name":"m"},"responseStatus":{"code":409}}` + "\n"
	event      = `{"stage":"ResponseComplete","verb":"create","userAgent":"karpenter-capi/v1","objectRef":{"resource":"events","name":"e"},"responseStatus":{"code":201}}` + "\n"
	foreign    = `{"stage":"ResponseComplete","verb":"delete","userAgent":"cluster-api-core/v1","objectRef":{"resource":"machines","name":"m"},"responseStatus":{"code":200}}` + "\n"
	notFound   = `{"stage":"ResponseComplete","verb":"delete","userAgent":"karpenter-capi/v1","objectRef":{"resource":"machines","name":"m"},"responseStatus":{"code":404}}` + "\n"
	watchBegan = `{"stage":"ResponseStarted","verb":"watch","userAgent":"karpenter-capi/v1","objectRef":{"resource":"nodes"}}` + "\n"
	denied     = `{"stage":"ResponseComplete","verb":"get","user":{"username":"admin"},"impersonatedUser":{"username":"operator"},"objectRef":{"resource":"secrets","name":"s"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}` + "\n"
	review     = `{"stage":"ResponseComplete","verb":"create","userAgent":"karpenter-capi/v1","objectRef":{"resource":"selfsubjectaccessreviews"},"responseStatus":{"code":201}}` + "\n"
	halfALine  = `{"stage":"ResponseComplete","verb":"patch","userAg`
)

func TestWritesBy(t *testing.T) {
	for name, tc := range map[string]struct {
		log  string
		want []string
	}{
		"reads, leases, reviews and writes of other clients do not count": {log: list + lease + review + foreign + watchBegan},
		"all other writes do, whatever the response":                      {log: status + status + event + conflict, want: []string{"2 × patch nodeclaims/status", "1 × create events", "1 × patch machines"}},
		"a line that a kill cut off":                                      {log: halfALine + "\n" + status, want: []string{"1 × patch nodeclaims/status"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Count(WritesBy("karpenter-capi", parse([]byte(tc.log), "ResponseComplete")))); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeleter(t *testing.T) {
	entries := parse([]byte(notFound+foreign), "ResponseComplete")
	if got := Deleter("machines", "m", entries); got == nil || got.UserAgent != "cluster-api-core/v1" {
		t.Errorf("got %v, want the request that succeeded", got)
	}
	if got := Deleter("machines", "n", entries); got != nil {
		t.Errorf("got %v of another Machine", got)
	}
}

func TestSince(t *testing.T) {
	log := Log{Path: filepath.Join(t.TempDir(), "audit.log")}
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(log.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // Since would miss what was not written.
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	read := func(from Position, want ...string) Position {
		t.Helper()
		entries, next, err := log.Since(from)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, Count(entries)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		return next
	}
	write(status + halfALine)
	next := read(0, "1 × patch nodeclaims/status")
	write(conflict[len(halfALine):])
	next = read(next, "1 × patch machines")
	end, err := log.End()
	if err != nil || end != next {
		t.Errorf("the log ends at %d (%v), and was read up to %d", end, err, next)
	}
}

func TestRequests(t *testing.T) {
	log := Log{Path: filepath.Join(t.TempDir(), "audit.log")}
	if err := os.WriteFile(log.Path, []byte(watchBegan+list+denied+halfALine), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := log.Requests()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 × get secrets", "1 × list nodes", "1 × watch nodes"}, Count(entries)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for i := range entries {
		if secret := entries[i].ObjectRef.Resource == "secrets"; entries[i].Denied() != secret || entries[i].For("operator") != secret {
			t.Errorf("%s: denied %t, for the operator %t", &entries[i], entries[i].Denied(), entries[i].For("operator"))
		}
	}
}
