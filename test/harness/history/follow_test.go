// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// message returns what etcd sends for a write, or for a deletion if there is no object.
func message(revision int64, key, object string) string {
	e := map[string]any{"kv": map[string]any{"key": []byte(key), "mod_revision": fmt.Sprint(revision), "value": []byte(object)}}
	if object == "" {
		e["type"] = "DELETE"
	}
	data, _ := json.Marshal(map[string]any{"result": map[string]any{"events": []any{e}}})
	return string(data) + "\n"
}

func TestRead(t *testing.T) {
	const machine = `{"metadata":{"name":"m","uid":"1","creationTimestamp":"2026-01-01T12:00:00Z","deletionTimestamp":"2026-01-01T12:00:01Z",
		"labels":{"karpenter.cluster.x-k8s.io/node-claim-uid":"2"},"annotations":{"karpenter.cluster.x-k8s.io/node-claim":"a"},
		"ownerReferences":[{"kind":"MachineSet","name":"s","controller":true}]},
		"spec":{"providerID":"real://m"},"status":{"nodeRef":{"name":"n"},"conditions":[{"type":"InfrastructureReady","status":"False","reason":"NoCapacity"}]}}`
	const claim = `{"metadata":{"name":"a","uid":"2"},"status":{"providerID":"nodeclaim://2","conditions":[{"type":"Launched","status":"True"},{"type":"Ready","status":"False"}]}}`
	for name, tc := range map[string]struct {
		stream   string
		want     []Change
		wantNext int64
		wantErr  error
	}{
		"a Machine, a claim that is being deleted, and an Event": {
			stream: `{"result":{"created":true}}` +
				message(5, "/registry/cluster.x-k8s.io/machines/default/m", machine) +
				message(6, "/registry/karpenter.sh/nodeclaims/a", claim) +
				message(7, "/registry/karpenter.sh/nodeclaims/a", "") +
				message(8, "/registry/in-management/cluster.x-k8s.io/machines/default/m", "") +
				message(9, "/registry/events/default/x", "not JSON"),
			want: []Change{{Revision: 5, Kind: Machine, Key: "default/m", Object: &Object{
				Name: "m", UID: "1", Created: start, Deleted: start.Add(time.Second), ProviderID: "real://m", Node: "n", Claim: "2", ClaimName: "a", Set: "s", Failed: "NoCapacity",
			}}, {Revision: 6, Kind: NodeClaim, Key: "a", Object: &Object{
				Name: "a", UID: "2", ProviderID: "nodeclaim://2", True: []string{"Launched"},
			}}, {Revision: 7, Kind: NodeClaim, Key: "a"}, {Revision: 8, Kind: Machine, Key: "default/m"}},
			wantNext: 10,
			wantErr:  io.EOF,
		},
		"changes that were not seen no longer exist": {
			stream:   `{"result":{"canceled":true,"compact_revision":"100"}}`,
			wantNext: 1,
			wantErr:  &gapError{text: "etcd has only changes after revision 100, and the last known revision is 0"},
		},
		"an object that cannot be read": {
			stream:   message(5, "/registry/karpenter.sh/nodeclaims/a", "no JSON"),
			wantNext: 1,
			wantErr:  &gapError{text: "reading a NodeClaim from etcd: invalid character 'o' in literal null (expecting 'u')"},
		},
		"an error": {
			stream:   `{"error":{"message":"etcdserver: no leader"}}`,
			wantNext: 1,
			wantErr:  errors.New("watching etcd: etcdserver: no leader"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Change
			next := int64(1)
			err := read(strings.NewReader(tc.stream), &next, func(c Change) { got = append(got, c) })
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Change{}, "Seen")); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if next != tc.wantNext {
				t.Errorf("the next revision is %d, want %d", next, tc.wantNext)
			}
			if fmt.Sprint(err) != fmt.Sprint(tc.wantErr) {
				t.Errorf("got the error %v, want %v", err, tc.wantErr)
			}
		})
	}
}
