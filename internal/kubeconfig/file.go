// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"errors"
	"net/http"
	"net/url"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// content is what a file contains, and how requests are sent with it.
type content struct {
	text string
	// config is the client configuration in the file.
	config *rest.Config
	// server is the URL of the API server.
	server *url.URL
	// transport authenticates requests as the user in the file.
	transport http.RoundTripper
}

// read reads a file and prepares the transport. Nothing is sent.
func read(path string) (*content, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, text)
}

// parse returns the content of a file. Errors do not contain it, because it has credentials.
func parse(path string, text []byte) (*content, error) {
	file, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("it is no kubeconfig in YAML or JSON")
	}
	for _, cluster := range file.Clusters {
		cluster.LocationOfOrigin = path
	}
	for _, user := range file.AuthInfos {
		user.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, err
	}
	// Without a cluster, client-go would use the one of the Pod or localhost.
	if err := clientcmd.ConfirmUsable(*file, ""); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		// The error would contain the URL, which can have a password.
		return nil, errors.New("the server of the current context is no URL")
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &content{text: string(text), config: config, server: server, transport: transport}, nil
}
