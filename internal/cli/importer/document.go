// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/samber/lo"
)

// document reads a JSON file value by value, because the price list of a region has several
// hundred megabytes.
type document struct {
	file File
	// isArray reports whether the document is an array.
	isArray bool
	decoder *json.Decoder
}

// element is a value in a document, by its path.
type element struct {
	document *document
	path     string
}

// firstByte returns the first byte of a file that is no space.
func firstByte(file File) (byte, error) {
	first, err := bufio.NewReader(file.Content).Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%s: %w", file.Name, err)
	}
	if _, err := file.Content.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("%s: %w", file.Name, err)
	}
	if bytes.HasPrefix(first, []byte{0xff, 0xfe}) || bytes.HasPrefix(first, []byte{0xfe, 0xff}) {
		return 0, fmt.Errorf("%s: it is encoded in UTF-16, expected UTF-8: in PowerShell, save it with | Out-File -Encoding utf8", file.Name)
	}
	first = bytes.TrimSpace(first)
	if len(first) == 0 {
		return 0, fmt.Errorf("%s: the file is empty", file.Name)
	}
	return first[0], nil
}

// open returns the only value of a JSON file.
func open(file File) (element, error) {
	first, err := firstByte(file)
	if err != nil {
		return element{}, err
	}
	if first != '{' && first != '[' {
		return element{}, fmt.Errorf("%s:1: expected JSON, found something else: save what the command prints with JSON as its output format", file.Name)
	}
	return element{document: &document{file, first == '[', json.NewDecoder(file.Content)}}, nil
}

// fields calls read for each field of an object. read must read the field's value.
func (e element) fields(read func(key string, value element) error) error {
	if err := e.delimiter('{', "an object"); err != nil {
		return err
	}
	for e.document.decoder.More() {
		key, err := e.document.decoder.Token()
		if err != nil {
			return e.invalid(err)
		}
		name := key.(string)
		if err := read(name, element{e.document, lo.Ternary(e.path == "", name, e.path+"."+name)}); err != nil {
			return err
		}
	}
	return e.end()
}

// each calls read for each value of an array. read must read the value.
func (e element) each(read func(value element) error) error {
	if err := e.delimiter('[', "an array"); err != nil {
		return err
	}
	for i := 0; e.document.decoder.More(); i++ {
		if err := read(element{e.document, fmt.Sprintf("%s[%d]", e.path, i)}); err != nil {
			return err
		}
	}
	return e.end()
}

func (e element) delimiter(want json.Delim, name string) error {
	token, err := e.document.decoder.Token()
	if err != nil {
		return e.invalid(err)
	}
	if token != want {
		return e.errorf("expected %s, found %v", name, token)
	}
	return nil
}

func (e element) end() error {
	if _, err := e.document.decoder.Token(); err != nil {
		return e.invalid(err)
	}
	return nil
}

// read reads the value.
func (e element) read(into any) error {
	if err := e.document.decoder.Decode(into); err != nil {
		return e.invalid(err)
	}
	return nil
}

// skip reads the value and forgets it.
func (e element) skip() error {
	for depth := 0; ; {
		token, err := e.document.decoder.Token()
		if err != nil {
			return e.invalid(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// close returns an error if anything follows the value.
func (e element) close() error {
	if _, err := e.document.decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s:%d: expected the end of the file, found more: save the output of one command in each file", e.document.file.Name, e.document.line(e.document.decoder.InputOffset()))
	}
	return nil
}

// String returns the file and the path, for errors.
func (e element) String() string {
	return e.document.file.Name + lo.Ternary(e.path == "", "", ": "+e.path)
}

func (e element) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", e, fmt.Errorf(format, args...))
}

// invalid explains an error of the decoder.
func (e element) invalid(err error) error {
	d := e.document
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s:%d: the file ends within %s: it is truncated, save it again", d.file.Name, d.line(-1), lo.CoalesceOrEmpty(e.path, "its first value"))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s:%d: expected JSON: %w", d.file.Name, d.line(syntax.Offset), err)
	case errors.As(err, &kind):
		return e.errorf("%s: expected %s, found a %s", kind.Field, nameOf(kind.Type.Kind().String()), kind.Value)
	}
	return e.errorf("%w", err)
}

// nameOf returns the name in JSON of a kind of Go's values.
func nameOf(kind string) string {
	switch kind {
	case "slice":
		return "an array"
	case "struct", "map":
		return "an object"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	}
	return "a number"
}

// line returns the number of the line at an offset; at the end, if it is negative.
func (d *document) line(offset int64) int {
	if _, err := d.file.Content.Seek(0, io.SeekStart); err != nil {
		return 0
	}
	var content io.Reader = d.file.Content
	if offset >= 0 {
		content = io.LimitReader(content, offset)
	}
	line, buffer := 1, make([]byte, 64<<10)
	for {
		n, err := content.Read(buffer)
		line += bytes.Count(buffer[:n], []byte("\n"))
		if err != nil {
			return line
		}
	}
}
