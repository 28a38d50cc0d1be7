// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// action answers a request of the query protocol.
type action func(*Cloud, parameters) ([]element, error)

// service is a service of AWS with the query protocol.
type service struct {
	actions map[string]action
	// answer and refuse wrap what the service answers.
	answer func(action string, content []element) element
	refuse func(*failure) element
}

// services are known by the version of their API.
var services = map[string]service{
	"2016-11-15": {
		actions: ec2Actions,
		answer:  func(action string, content []element) element { return with(action+"Response", content...) },
		refuse: func(f *failure) element {
			return with("Response", with("Errors", with("Error", text("Code", f.code), text("Message", f.message))))
		},
	},
	"2011-01-01": {
		actions: autoScalingActions,
		answer: func(action string, content []element) element {
			return with(action+"Response", with(action+"Result", content...))
		},
		refuse: func(f *failure) element {
			return with("ErrorResponse", with("Error", text("Code", f.code), text("Message", f.message)))
		},
	},
}

// secretsTarget begins the name of an action of Secrets Manager.
const secretsTarget = "secretsmanager."

// ServeHTTP implements http.Handler.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name, found := strings.CutPrefix(r.Header.Get("X-Amz-Target"), secretsTarget); found {
		c.serveSecrets(w, r, name)
		return
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request := parameters(r.PostForm)
	name, api := request.get("Action"), services[request.get("Version")]
	run, known := api.actions[name]
	if !known {
		c.unknown = append(c.unknown, cmp.Or(name, r.Header.Get("X-Amz-Target"), r.Method+" "+r.URL.Path))
		http.Error(w, "unknown request", http.StatusNotImplemented)
		return
	}
	w.Header().Set("X-Amzn-Requestid", string(uuid.NewUUID()))
	content, err := run(c, request)
	if refused := (*failure)(nil); errors.As(err, &refused) {
		write(w, refused.status, api.refuse(refused))
		return
	}
	write(w, http.StatusOK, api.answer(name, content))
}

func write(w http.ResponseWriter, status int, answer element) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(answer)
}

// serveSecrets answers a request of Secrets Manager.
func (c *Cloud) serveSecrets(w http.ResponseWriter, r *http.Request, name string) {
	request := struct {
		Name, SecretID string
		SecretBinary   []byte
	}{}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	refuse := func(code string) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "message": "the secret " + cmp.Or(request.Name, request.SecretID)})
	}
	id := cmp.Or(request.Name, request.SecretID)
	_, exists := c.secrets[id]
	switch {
	case name == "CreateSecret" && exists:
		refuse("ResourceExistsException")
		return
	case name == "CreateSecret":
		c.secrets[id] = request.SecretBinary
	case name == "DeleteSecret" && !exists:
		refuse("ResourceNotFoundException")
		return
	case name == "DeleteSecret":
		delete(c.secrets, id)
	default:
		c.unknown = append(c.unknown, secretsTarget+name)
		refuse("InvalidRequestException")
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"Name": id})
}
