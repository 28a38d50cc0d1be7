// SPDX-License-Identifier: Apache-2.0

// Command image writes the operator's image into an OCI archive, without a daemon and without a base image. The same
// binaries always give the same bytes.
//
//	image ARCHIVE VERSION SECONDS BINARIES
//	image files FOLDER
//	image same ARCHIVE OTHER
//
// The image has two layers: files that are the same for all platforms (files.go), and the
// binaries. BINARIES has a folder for each platform, such as linux-amd64. SECONDS is the time of
// the commit since 1970. It is the time of all files and of the image.
//
// The Dockerfile builds the same layers with a daemon: it gets the files of the first one with "image files". "image same"
// compares two archives: the settings of the images, and paths, modes, owners and contents of the files in each layer. It
// ignores times, compression and history, because Docker writes others.
//
// The CA certificates are those of Mozilla, from the Go module golang.org/x/crypto/x509roots/fallback. go.mod pins it, go.sum
// has its checksum, and it needs neither a Linux distribution nor a download of its own.
package main
