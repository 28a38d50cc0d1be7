// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// reconnectAfter is for how long etcd is left alone after an error.
const reconnectAfter = time.Second

// Follow calls observe with every change from the first on, in order, until the context ends. The endpoint is etcd's, as
// http://127.0.0.1:2379, at which it serves its JSON interface beside gRPC. It returns an error when it cannot go on
// without a gap.
func Follow(ctx context.Context, endpoint string, observe func(Change)) error {
	next := int64(1)
	for {
		err := watch(ctx, endpoint, &next, observe)
		if ctx.Err() != nil {
			return nil
		}
		if gap := (*gapError)(nil); errors.As(err, &gap) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectAfter): // Whatever it was, the next watch tells, and nothing is lost meanwhile.
		}
	}
}

// gapError says that etcd has no longer what was not seen yet, or that it cannot be understood.
type gapError struct{ text string }

// Error implements error.
func (e *gapError) Error() string { return e.text }

// The messages of etcd's watch: go.etcd.io/etcd/api/v3/etcdserverpb/rpc.proto, as JSON, in which 64-bit numbers are
// strings and bytes are base64.
type (
	watchRequest struct {
		Create createRequest `json:"create_request"`
	}
	createRequest struct {
		Key           []byte `json:"key"`
		RangeEnd      []byte `json:"range_end"`
		StartRevision int64  `json:"start_revision,string"`
	}
	watchResponse struct {
		Result struct {
			Canceled        bool    `json:"canceled"`
			CancelReason    string  `json:"cancel_reason"`
			CompactRevision int64   `json:"compact_revision,string"`
			Events          []event `json:"events"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	event struct {
		// Type is empty for a write.
		Type string `json:"type"`
		KV   struct {
			Key         []byte `json:"key"`
			Value       []byte `json:"value"`
			ModRevision int64  `json:"mod_revision,string"`
		} `json:"kv"`
	}
)

// watch observes changes from the revision next on, and sets it to that of the first change it has not seen.
func watch(ctx context.Context, endpoint string, next *int64, observe func(Change)) error {
	body, err := json.Marshal(watchRequest{createRequest{[]byte(firstKey), []byte(endKey), *next}})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/v3/watch", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // It is only read.
	return read(response.Body, next, observe)
}

// read observes the changes of a watch until it ends.
func read(stream io.Reader, next *int64, observe func(Change)) error {
	decoder := json.NewDecoder(stream)
	for {
		message := &watchResponse{}
		if err := decoder.Decode(message); err != nil {
			return err
		}
		result := &message.Result
		switch {
		case message.Error != nil:
			return fmt.Errorf("watching etcd: %s", message.Error.Message)
		case result.CompactRevision > 0:
			return &gapError{fmt.Sprintf("etcd has only what is after revision %d, and changes are known up to %d", result.CompactRevision, *next-1)}
		case result.Canceled:
			return fmt.Errorf("etcd ended the watch: %s", result.CancelReason)
		}
		seen := time.Now()
		for i := range result.Events {
			if err := deliver(&result.Events[i], seen, observe); err != nil {
				return err
			}
			*next = result.Events[i].KV.ModRevision + 1
		}
	}
}

// deliver makes a change of an event, if it is of one of the kinds.
func deliver(e *event, seen time.Time, observe func(Change)) error {
	kind, key, ok := kindOf(string(e.KV.Key))
	if !ok {
		return nil
	}
	change := Change{Revision: e.KV.ModRevision, Seen: seen, Kind: kind, Key: key}
	if e.Type == "" || e.Type == "PUT" {
		object, err := decode(kind, e.KV.Value)
		if err != nil {
			return &gapError{err.Error()}
		}
		change.Object = object
	}
	observe(change)
	return nil
}
