// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// cloudConfig is the part of cloud-init's cloud-config that matters for the Node.
type cloudConfig struct {
	WriteFiles []file `json:"write_files"`
	RunCommand []any  `json:"runcmd"`
}

// file is a file that cloud-init writes.
type file struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
	Append   bool   `json:"append"`
}

// The first lines of cloud-init's user data (cloud-init: doc/rtd/explanation/format and instancedata).
const (
	jinjaHeader       = "## template: jinja\n"
	cloudConfigHeader = "#cloud-config\n"
)

// parseCloudConfig reads cloud-init's user data of a machine with a host name.
func parseCloudConfig(data []byte, hostname string) (*cloudConfig, error) {
	text := string(data)
	if rest, templated := strings.CutPrefix(text, jinjaHeader); templated {
		text = renderJinja(rest, hostname)
	}
	if !strings.HasPrefix(text, cloudConfigHeader) {
		return nil, fmt.Errorf("the bootstrap data is no cloud-config: it does not begin with %q", strings.TrimSpace(cloudConfigHeader))
	}
	config := &cloudConfig{}
	if err := yaml.Unmarshal([]byte(text), config); err != nil {
		return nil, fmt.Errorf("reading the cloud-config: %w", err)
	}
	return config, nil
}

var (
	jinjaExpression = regexp.MustCompile(`\{\{-?\s*([^{}]*?)\s*-?\}\}`)
	jinjaIndex      = regexp.MustCompile(`\[["']([^"']*)["']\]`)
	// hostnameVariables are cloud-init's names of the host name.
	hostnameVariables = []string{
		"ds.meta_data.local_hostname", "ds.meta_data.hostname", "local_hostname", "v1.local_hostname", "hostname",
	}
)

// renderJinja replaces the variables that contain the host name. cloud-init replaces a variable that it does not know by
// CI_MISSING_JINJA_VAR and its name (cloudinit/templater.py).
func renderJinja(text, hostname string) string {
	return jinjaExpression.ReplaceAllStringFunc(text, func(expression string) string {
		name := jinjaIndex.ReplaceAllString(jinjaExpression.FindStringSubmatch(expression)[1], ".$1")
		if slices.Contains(hostnameVariables, name) {
			return hostname
		}
		return "CI_MISSING_JINJA_VAR/" + name
	})
}

// content returns what a file contains when all files are written; false if there is no such file.
func (c *cloudConfig) content(path string) (string, bool, error) {
	var content string
	found := false
	for _, f := range c.WriteFiles {
		if f.Path != path {
			continue
		}
		decoded, err := f.decode()
		if err != nil {
			return "", false, fmt.Errorf("decoding the file %s: %w", path, err)
		}
		if !f.Append {
			content = ""
		}
		content, found = content+decoded, true
	}
	return content, found, nil
}

// decode returns the content of a file without its encoding (cloudinit/config/cc_write_files.py, canonicalize_extraction).
func (f file) decode() (string, error) {
	data := []byte(f.Content)
	switch encoding := strings.ToLower(f.Encoding); encoding {
	case "", "text/plain":
		return f.Content, nil
	case "b64", "base64":
		data, err := base64.StdEncoding.DecodeString(f.Content)
		return string(data), err
	case "gz+b64", "gzip+b64", "gz+base64", "gzip+base64":
		var err error
		if data, err = base64.StdEncoding.DecodeString(f.Content); err != nil {
			return "", err
		}
	case "gz", "gzip":
	default:
		return "", fmt.Errorf("unknown encoding %q", f.Encoding)
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	unpacked, err := io.ReadAll(reader)
	return string(unpacked), errors.Join(err, reader.Close())
}

// commands returns the commands that cloud-init runs at the end, each as one line.
func (c *cloudConfig) commands() []string {
	var lines []string
	for _, command := range c.RunCommand {
		switch command := command.(type) {
		case string:
			lines = append(lines, command)
		case []any:
			lines = append(lines, strings.TrimSpace(fmt.Sprintln(command...)))
		}
	}
	return lines
}
