// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
)

// Server returns the address of the API server of a configuration, for messages. It has no
// password, which the URL in a kubeconfig can have.
func Server(config *rest.Config) string {
	address, err := url.Parse(config.Host)
	if err != nil {
		// The error would contain the address.
		return "with an invalid address"
	}
	address.RawQuery = ""
	if address.User != nil {
		address.User = url.User("redacted")
	}
	return address.String()
}

// CheckServer returns an error if the address of an API server is invalid. The errors of client-go
// contain the address with its password.
func CheckServer(cluster string, config *rest.Config) error {
	if _, _, err := rest.DefaultServerUrlFor(config); err != nil {
		return fmt.Errorf("the address of the %s cluster's API server is invalid: correct server in its kubeconfig", cluster)
	}
	return nil
}
