// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// file is a file or, with a mode that says so, a folder of the image. All belong to root.
type file struct {
	path    string // relative to the root of the image
	mode    fs.FileMode
	content []byte
}

// user is the id of the user and group that the image runs as.
const user = "65532"

// files returns what is in the image beside the binaries. A folder is before what it contains.
func files() []file {
	return []file{
		{path: "etc", mode: fs.ModeDir | 0o755},
		{path: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:" + user + ":\n")},
		{path: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\n" +
			"nonroot:x:" + user + ":" + user + ":nonroot:/tmp:/sbin/nologin\n")},
		{path: "etc/ssl", mode: fs.ModeDir | 0o755},
		{path: "etc/ssl/certs", mode: fs.ModeDir | 0o755},
		{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates()},
		{path: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

// writeFiles writes what files returns into a folder.
func writeFiles(folder string) error {
	for _, f := range files() {
		if err := f.write(folder); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file below a folder, with its mode whatever the umask is.
func (f file) write(folder string) error {
	path := filepath.Join(folder, f.path)
	if f.mode.IsDir() {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	} else if err := os.WriteFile(path, f.content, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, f.mode&(fs.ModePerm|fs.ModeSticky))
}

// certificates returns Mozilla's CA certificates. Those that Mozilla trusts only up to a date are left out, because the
// file has no place for a date.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}
