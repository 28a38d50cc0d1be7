// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "files":
		return writeFiles(args[1])
	case len(args) == 3 && args[0] == "same":
		return same(args[1], args[2])
	case len(args) != 4:
		return errors.New("usage: image ARCHIVE VERSION SECONDS BINARIES, image files FOLDER, or image same ARCHIVE OTHER")
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return fmt.Errorf("the time %q is not a number of seconds since 1970", args[2])
	}
	return writeArchive(args[0], args[1], time.Unix(seconds, 0).UTC(), args[3])
}
