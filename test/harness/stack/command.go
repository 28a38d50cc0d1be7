// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"path/filepath"
)

// DefaultDir is the state folder of `make stack-up`, relative to the root of the repository.
const DefaultDir = ".stack"

// Command returns how a user starts, stops or inspects the stack in a state folder. The name is up, down or status.
func Command(name, dir string) string {
	if byDefault, err := filepath.Abs(DefaultDir); err == nil && dir == byDefault {
		return "make stack-" + name
	}
	return fmt.Sprintf("go run ./test/trials stack-%s --state-dir %s", name, dir)
}
