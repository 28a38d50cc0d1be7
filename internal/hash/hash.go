// SPDX-License-Identifier: Apache-2.0

package hash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/samber/lo"
)

// Of returns the SHA-256 of the JSON of values, as 64 hexadecimal digits. The values must have only one
// JSON form, and always have one: encoding/json sorts maps, and quantities are canonical.
func Of(values ...any) string {
	sum := sha256.New()
	for _, value := range values {
		// Encoding these types cannot fail, and writing to a hash never does.
		lo.Must0(json.NewEncoder(sum).Encode(value))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
