// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/samber/lo"
)

// same returns an error that lists in what the images of two archives differ, apart from times, compression and history.
func same(archive, other string) error {
	has, err := describe(archive)
	if err != nil {
		return err
	}
	others, err := describe(other)
	if err != nil {
		return err
	}
	only, onlyOther := lo.Difference(has, others)
	if len(only)+len(onlyOther) == 0 {
		return nil
	}
	return fmt.Errorf("the images differ\nonly in %s:\n  %s\nonly in %s:\n  %s",
		archive, strings.Join(only, "\n  "), other, strings.Join(onlyOther, "\n  "))
}

// describe returns a line for each setting and each file of the images in an archive.
func describe(archive string) ([]string, error) {
	folder, err := os.MkdirTemp("", "image-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	images, err := imagesIn(archive, folder)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, platform := range slices.Sorted(maps.Keys(images)) {
		described, err := describeImage(images[platform])
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", archive, platform, err)
		}
		for _, line := range described {
			lines = append(lines, platform+" "+line)
		}
	}
	return lines, nil
}

func describeImage(image v1.Image) ([]string, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	c := config.Config
	lines := []string{
		fmt.Sprintf("user %s, folder %s, entrypoint %q, command %q", c.User, c.WorkingDir, c.Entrypoint, c.Cmd),
		fmt.Sprintf("environment %q", c.Env),
		fmt.Sprintf("labels %v", c.Labels),
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for i, layer := range layers {
		files, err := describeLayer(layer)
		if err != nil {
			return nil, err
		}
		for _, line := range files {
			lines = append(lines, fmt.Sprintf("layer %d: %s", i+1, line))
		}
	}
	return lines, nil
}

func describeLayer(layer v1.Layer) (lines []string, err error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, reader); err != nil {
			return nil, err
		}
		name := path.Clean("/" + header.Name)
		if name == "/" {
			continue // some builders list the root, and it is the same in each image
		}
		lines = append(lines, fmt.Sprintf("%s %d:%d %s %x", header.FileInfo().Mode(), header.Uid, header.Gid, name, sum.Sum(nil)))
	}
}
