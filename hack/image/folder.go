// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// packFolder writes all files of a folder, in the order of their names.
func packFolder(writer *tar.Writer, folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return pack(writer, file{path: name, mode: fs.ModeDir | 0o755}, time.Unix(0, 0))
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return pack(writer, file{path: name, mode: 0o644, content: content}, time.Unix(0, 0))
	})
}

// info describes a file for package tar.
func (f file) info(created time.Time) fs.FileInfo { return info{file: f, created: created} }

// info is the fs.FileInfo of a file.
type info struct {
	file
	created time.Time
}

func (i info) Name() string       { return filepath.Base(i.path) }
func (i info) Size() int64        { return int64(len(i.content)) }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.created }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
