// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Entry is one request. Its fields are named as in audit.k8s.io/v1.
type Entry struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`

	User struct {
		Username string `json:"username"`
	} `json:"user"`

	// ImpersonatedUser is the user that the request is authorized for, if it is not the one that sent it.
	ImpersonatedUser struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`

	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`

	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`

	// Annotations has the decision of the API server's authorizers.
	Annotations map[string]string `json:"annotations"`

	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
}

// Write reports whether the request was a write, whatever the response was. Leases do not count, because their holders
// renew them all the time. Nor do reviews of tokens and rights, which are created but not stored.
func (e *Entry) Write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) &&
		e.ObjectRef.Resource != "leases" && !strings.HasSuffix(e.ObjectRef.Resource, "reviews")
}

// Event reports whether the request is about a Kubernetes Event.
func (e *Entry) Event() bool { return e.ObjectRef.Resource == "events" }

// By reports whether the client's user agent has the given name, such as karpenter-capi in karpenter-capi/v1.0.
func (e *Entry) By(agent string) bool { return strings.HasPrefix(e.UserAgent, agent+"/") }

// For reports whether the request was authorized for a user, such as system:serviceaccount:default:operator.
func (e *Entry) For(user string) bool {
	return cmp.Or(e.ImpersonatedUser.Username, e.User.Username) == user
}

// Denied reports whether the user has no right to send the request. Admission returns the same status.
func (e *Entry) Denied() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// Succeeded reports whether the request succeeded.
func (e *Entry) Succeeded() bool {
	return e.ResponseStatus.Code >= 200 && e.ResponseStatus.Code < 300
}

// What returns what was requested, without the name of the object.
func (e *Entry) What() string {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return e.Verb + " " + resource
}

// String implements fmt.Stringer.
func (e *Entry) String() string {
	name := e.ObjectRef.Name
	if name == "" {
		name = e.RequestURI
	}
	return fmt.Sprintf("%s %s %s: %d, by %s", e.StageTimestamp.Local().Format("15:04:05.000"), e.What(), name, e.ResponseStatus.Code, e.UserAgent)
}

// Log is an audit log that kube-apiserver continues to write.
type Log struct {
	// Path of the file.
	Path string
}

// Position is a place in a log.
type Position int64

// End returns where the log ends now.
func (l Log) End() (Position, error) {
	info, err := os.Stat(l.Path)
	if err != nil {
		return 0, err
	}
	return Position(info.Size()), nil
}

// Since returns the entries after a position, and the position after them. A line that is still being written is
// returned by the next call. A line that is incomplete because its writer was killed is skipped.
func (l Log) Since(from Position) ([]Entry, Position, error) {
	file, err := os.Open(l.Path)
	if err != nil {
		return nil, from, err
	}
	defer file.Close() //nolint:errcheck // It is only read.
	if _, err := file.Seek(int64(from), io.SeekStart); err != nil {
		return nil, from, err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, from, err
	}
	end := bytes.LastIndexByte(data, '\n') + 1
	return parse(data[:end], "ResponseComplete"), from + Position(end), nil
}

// Requests returns all requests until now, with watches that have not ended yet.
func (l Log) Requests() ([]Entry, error) {
	data, err := os.ReadFile(l.Path)
	return parse(data, "ResponseComplete", "ResponseStarted"), err
}

// parse reads complete lines with the requests in some stages.
func parse(data []byte, stages ...string) []Entry {
	var entries []Entry
	for line := range bytes.Lines(data) {
		entry := Entry{}
		if json.Unmarshal(line, &entry) == nil && slices.Contains(stages, entry.Stage) {
			entries = append(entries, entry)
		}
	}
	return entries
}
