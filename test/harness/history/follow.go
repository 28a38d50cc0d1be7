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

// reconnectAfter is how long to wait after an error of etcd.
const reconnectAfter = time.Second

// Follow calls observe with every change from the first on, in order, until the context ends. The endpoint is that of
// etcd, such as http://127.0.0.1:2379, where it serves its JSON interface in addition to gRPC. It returns an error if
// it cannot continue without a gap.
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
		case <-time.After(reconnectAfter): // The next watch shows whether the error is permanent, and nothing is lost in between.
		}
	}
}

// gapError is the error if etcd no longer has changes that were not seen, or sent something that cannot be read.
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
		// Type is empty if the event is a write.
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
			return &gapError{fmt.Sprintf("etcd has only changes after revision %d, and the last known revision is %d", result.CompactRevision, *next-1)}
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

// deliver observes an event as a change if it is of one of the kinds.
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
