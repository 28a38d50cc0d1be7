// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"errors"
	"io"
)

// end returns the last bytes of a stream, at most so many, from the first full line. It returns what was read before an error, too.
func end(from io.Reader, most int) ([]byte, error) {
	var last []byte
	chunk := make([]byte, 1<<16)
	cut := false
	for {
		n, err := from.Read(chunk)
		last = append(last, chunk[:n]...)
		if len(last) > 2*most { // seldom, because each time copies what remains
			last, cut = append([]byte{}, last[len(last)-most:]...), true
		}
		if err == nil {
			continue
		}
		if len(last) > most {
			last, cut = last[len(last)-most:], true
		}
		if cut {
			last = last[bytes.IndexByte(last, '\n')+1:]
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return last, err
	}
}
