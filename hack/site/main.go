// SPDX-License-Identifier: Apache-2.0

// Command site writes the documentation as a web site that needs no server and no network. Its arguments are the folder of
// the repository and the folder to write. The navigation is docs/README.md: its headings, and the pages that its lists name. A page
// that is in no list, and a link that leads nowhere, are errors.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site REPOSITORY OUT")
		os.Exit(2)
	}
	if err := build(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
