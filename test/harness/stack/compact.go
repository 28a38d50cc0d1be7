// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Revision returns the revision of etcd, of the workload cluster.
func (s *Stack) Revision(ctx context.Context) (int64, error) {
	response := struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}{}
	// One key, whatever its value is: the revision is in the header.
	err := s.askEtcd(ctx, "range", map[string]any{"key": []byte("/"), "keys_only": true}, &response)
	return response.Header.Revision, err
}

// Compact deletes from etcd, of the workload cluster, what objects were before a revision. An API server that starts
// afterwards cannot continue watches from there.
func (s *Stack) Compact(ctx context.Context, revision int64) error {
	return s.askEtcd(ctx, "compaction", map[string]any{"revision": revision, "physical": true}, &struct{}{})
}

// askEtcd sends a request to the JSON interface of etcd's service KV (etcd: api/etcdserverpb/rpc.proto).
func (s *Stack) askEtcd(ctx context.Context, what string, request map[string]any, response any) error {
	etcd, err := s.Component(Etcd)
	if err != nil {
		return err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://%s/v3/kv/%s", address(etcd.Port), what)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // It is only read.
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s to %s: %s", answer.Status, what, content)
	}
	return json.Unmarshal(content, response)
}
