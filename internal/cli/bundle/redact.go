// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// leftOut replaces what is left out.
const leftOut = "(left out)"

// redaction removes from an object what can be secret.
type redaction func(object map[string]any)

// whole removes nothing.
func whole(map[string]any) {}

// statusOnly keeps the metadata and the status.
func statusOnly(object map[string]any) {
	maps.DeleteFunc(object, func(field string, _ any) bool {
		return !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field)
	})
}

// withoutVariables keeps only the class and the version of a Cluster's topology.
func withoutVariables(cluster map[string]any) {
	topology, _, _ := unstructured.NestedMap(cluster, "spec", "topology")
	if topology == nil {
		return
	}
	maps.DeleteFunc(topology, func(field string, _ any) bool { return field != "classRef" && field != "version" })
	_ = unstructured.SetNestedMap(cluster, topology, "spec", "topology")
}

// withoutImages removes the list of images from a Node, which is long.
func withoutImages(node map[string]any) {
	unstructured.RemoveNestedField(node, "status", "images")
}

// withoutBootstrapValues removes the values of patches of the bootstrap template.
func withoutBootstrapValues(template map[string]any) {
	for _, patch := range items(template, "spec", "patches") {
		if patch["target"] != string(v1alpha1.PatchTargetBootstrap) {
			continue
		}
		for _, operation := range items(patch, "jsonPatches") {
			for _, field := range []string{"value", "valueFrom"} {
				if _, has := operation[field]; has {
					operation[field] = leftOut
				}
			}
		}
	}
}

// withoutEnvironment removes the values of environment variables from a Pod, and the headers of probes.
func withoutEnvironment(pod map[string]any) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, container := range items(pod, "spec", list) {
			for _, variable := range items(container, "env") {
				if _, has := variable["value"]; has {
					variable["value"] = leftOut
				}
			}
			for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
				for _, header := range items(container, probe, "httpGet", "httpHeaders") {
					header["value"] = leftOut
				}
			}
		}
	}
}

// items returns the objects in a list of an object, to be changed there.
func items(object map[string]any, fields ...string) []map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	list, _ := found.([]any)
	var all []map[string]any
	for _, item := range list {
		if fields, is := item.(map[string]any); is {
			all = append(all, fields)
		}
	}
	return all
}

// strip removes what every object can have and nobody needs.
func strip(object map[string]any) {
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	unstructured.RemoveNestedField(object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
}

// pattern is the form of a credential in a text, and what replaces it.
type pattern struct {
	form        *regexp.Regexp
	replacement string
}

// patterns are the forms of credentials.
var patterns = []pattern{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?-----END [A-Z0-9 ]+-----`), leftOut},                      // PEM
	{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=]*`), leftOut},                                                  // PEM in base64
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), leftOut},                         // JSON Web Token
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), leftOut},                                                  // token of kubeadm
	{regexp.MustCompile(`(?i)\b(bearer) [A-Za-z0-9._~+/=-]{8,}`), "$1 " + leftOut},                                  // token of a request
	{regexp.MustCompile(`://[^/\s:@"]+:[^/\s@"]+@`), "://" + leftOut + "@"},                                         // password of a URL
	{regexp.MustCompile(`(?i)\b(password|passwd|client_secret)(["']?\s*[:=]\s*["']?)[^\s"',}]+`), "$1$2" + leftOut}, // named password
}

// These match PEM whose end was cut off: until the end of a value, or of a line.
var (
	cutValue = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*`)
	cutLine  = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----.*`)
)

// scrubValue replaces what has the form of a credential in a value of an object.
func scrubValue(text string) string {
	return cutValue.ReplaceAllString(scrub(text), leftOut)
}

// scrubLines replaces what has the form of a credential in a text with lines that do not belong together.
func scrubLines(text []byte) []byte {
	return cutLine.ReplaceAll([]byte(scrub(string(text))), []byte(leftOut))
}

func scrub(text string) string {
	for _, p := range patterns {
		text = p.form.ReplaceAllString(text, p.replacement)
	}
	return text
}

// scrubbed returns a value of an object with all its texts scrubbed.
func scrubbed(value any) any {
	switch value := value.(type) {
	case string:
		return scrubValue(value)
	case []any:
		for i := range value {
			value[i] = scrubbed(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = scrubbed(value[key])
		}
	}
	return value
}
