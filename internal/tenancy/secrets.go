// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Reference is a field that names a Secret.
type Reference struct {
	// Path of the field.
	Path string
	// Secret is the name. It follows a namespace and a slash if the field names another namespace.
	Secret string
}

// No provider declares which of its fields name Secrets, so they are found by their keys. A field that is
// found by mistake needs an entry in --allowed-secrets. A field that is not found gives away a Secret, so
// everything below a key that looks like one counts, except for what is known to be no name.
var (
	// naming are parts of the keys of fields that name Secrets or objects with credentials, such as
	// contentFrom.secret, secretName, userDataSecretRef and credentialsRef.
	naming = []string{"secret", "credential", "identityref", "serviceaccountname", "userdataref"}
	// namingObjects are keys of objects that refer to Secrets, such as those of Metal3 machines. Other
	// providers have strings or numbers at these keys.
	namingObjects = []string{"userData", "metaData", "networkData"}
	// podAccount is another key for the serviceAccountName of a Pod. Templates of GCP and KubeVirt have objects there.
	podAccount = "serviceAccount"
	// notNaming are keys that contain a part of naming and name no Secret, in templates of AWS and k0smotron.
	notNaming = []string{"secureSecretsBackend", "secretPrefix", "secretMetadata"}
	// beside are the keys next to the name in a reference to a Secret.
	beside = []string{"key", "keys", "items", "optional", "kind", "apiVersion", "apiGroup", "group", "namespace", "type", "cloudName", "region", "volumeLabel", "uid", "resourceVersion", "fieldPath"}
)

// Secrets returns the fields of an object's spec that name Secrets, by path. A name without a namespace is
// one of the given namespace.
func Secrets(spec map[string]any, namespace string) []Reference {
	finder := finder{namespace: namespace}
	finder.object("spec", spec, false)
	return finder.found
}

type finder struct {
	namespace string
	found     []Reference
}

// object looks at the fields of an object. named reports whether its strings are names of Secrets.
func (f *finder) object(at string, object map[string]any, named bool) {
	other, _ := object["namespace"].(string)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value, at := object[key], at+"."+key
		switch {
		case named && slices.Contains(beside, key), slices.Contains(notNaming, key):
		case key == "name" && object["kind"] == "Secret":
			f.value(at, other, value, true)
		default:
			f.value(at, other, value, named || names(key, value))
		}
	}
}

func (f *finder) value(at, namespace string, value any, named bool) {
	switch value := value.(type) {
	case map[string]any:
		f.object(at, value, named)
	case []any:
		for i, item := range value {
			f.value(fmt.Sprintf("%s[%d]", at, i), namespace, item, named)
		}
	case string:
		if !named || len(validation.IsDNS1123Subdomain(value)) > 0 {
			return // no Secret can have such a name
		}
		if namespace != "" && namespace != f.namespace {
			value = namespace + "/" + value
		}
		f.found = append(f.found, Reference{Path: at, Secret: value})
	}
}

// names reports whether the field with a key names a Secret, or contains a field that does.
func names(key string, value any) bool {
	switch value.(type) {
	case map[string]any:
		if slices.Contains(namingObjects, key) {
			return true
		}
	case string:
		if key == podAccount {
			return true
		}
	}
	lower := strings.ToLower(key)
	return slices.ContainsFunc(naming, func(part string) bool { return strings.Contains(lower, part) })
}
