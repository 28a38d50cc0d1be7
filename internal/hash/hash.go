// SPDX-License-Identifier: Apache-2.0

package hash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/samber/lo"
)

// Subject is what a hash is of. Its value is the version of such hashes, with which each of them begins. Change the
// version, and describe it in docs/design/hashes.md, when a release computes a hash of the same content in another way.
type Subject string

// The subjects.
const (
	// Resource is everything that shapes the Machines of a scalable resource.
	Resource Subject = "v1"
	// Copy is the content of a copy of a base template.
	Copy Subject = "v1"
	// InPlace is the settings of Machines that are changed in place.
	InPlace Subject = "v1"
	// Kubelet is what a template asks of the kubelets of an instance type.
	Kubelet Subject = "v1"
	// Infrastructure is the content of an infrastructure template, after patches.
	Infrastructure Subject = "v1"
	// Bootstrap is the content of a bootstrap template after patches, or the name of a Secret.
	Bootstrap Subject = "v1"
	// Revision is the part of a template's spec that shapes machines of any instance type.
	Revision Subject = "v1"
	// Rollout is what the machines of all offerings of a template are generated from.
	Rollout Subject = "v1"
	// From is what a template takes from the MachineDeployment that it follows.
	From Subject = "v1"
	// Accepted is the objects that the API server has accepted in dry runs.
	Accepted Subject = "v1"
)

const (
	// separator is between the version and the digits. Neither contains it.
	separator = "-"
	// digits is the number of hexadecimal digits: 128 bits.
	digits = 32
	// nameDigits is how many of them names have. Two names can be equal: see scalable.Differs.
	nameDigits = 12
)

// Of returns the hash of values: the version of its subject, and the first 32 digits of the SHA-256 of the JSON of the
// values. The values must have only one JSON form, and always have one: encoding/json sorts maps, and quantities are
// canonical.
func Of(subject Subject, values ...any) string {
	sum := sha256.New()
	for _, value := range values {
		// Encoding these types cannot fail, and writing to a hash never does.
		lo.Must0(json.NewEncoder(sum).Encode(value))
	}
	return string(subject) + separator + hex.EncodeToString(sum.Sum(nil))[:digits]
}

// InName returns the part of a hash that names end in: its first digits, without the version.
func InName(hash string) string {
	_, found, _ := strings.Cut(hash, separator)
	return found[:nameDigits]
}

// SameVersion reports whether two hashes have the same version. If not, nothing follows from the fact that they differ.
func SameVersion(a, b string) bool { return versionOf(a) == versionOf(b) }

// versionOf returns the version of a hash; empty if it has none.
func versionOf(hash string) string {
	version, _, found := strings.Cut(hash, separator)
	return lo.Ternary(found, version, "")
}
