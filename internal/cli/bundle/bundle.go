// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// root is the folder in the archive.
const root = "karpenter-capi-bundle/"

// Bundle is the content of an archive.
type Bundle struct {
	// Unread is what could not be read, with the reasons.
	Unread []string

	at time.Time
	// files have the content of files by their paths, and documents those in YAML that consist of several.
	files     map[string][]byte
	documents map[string]map[string][]byte
	// known are the objects of which the bundle has a document.
	known map[string]bool
}

func newBundle(at time.Time) *Bundle {
	return &Bundle{at: at, files: map[string][]byte{}, documents: map[string]map[string][]byte{}, known: map[string]bool{}}
}

// text adds a file with text, in which credentials are replaced.
func (b *Bundle) text(path string, content []byte) { b.files[path] = scrubLines(content) }

// unread adds what could not be read, once; nothing if there is no error.
func (b *Bundle) unread(err error) {
	if err == nil {
		return
	}
	if text := scrubValue(err.Error()); !slices.Contains(b.Unread, text) {
		b.Unread = append(b.Unread, text)
	}
}

// add adds an object to the file of its kind in a folder.
func (b *Bundle) add(folder string, redact redaction, object client.Object) {
	kind, err := apiutil.GVKForObject(object, scheme.Scheme)
	if err != nil {
		b.unread(err)
		return
	}
	content, err := view.Content(object)
	if err != nil {
		b.unread(fmt.Errorf("%s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err))
		return
	}
	content["apiVersion"], content["kind"] = kind.ToAPIVersionAndKind()
	strip(content)
	redact(content)
	document, err := yaml.Marshal(scrubbed(content))
	if err != nil {
		b.unread(fmt.Errorf("%s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err))
		return
	}
	path := folder + "/" + kind.Kind + ".yaml"
	if b.documents[path] == nil {
		b.documents[path] = map[string][]byte{}
	}
	b.documents[path][object.GetNamespace()+"/"+object.GetName()] = document
	b.known[known(kind.Kind, object.GetNamespace(), object.GetName())] = true
}

// known returns a text that identifies an object.
func known(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// content returns all files by their paths.
func (b *Bundle) content() map[string][]byte {
	all := maps.Clone(b.files)
	for path, documents := range b.documents {
		all[path] = bytes.Join(slices.Collect(func(yield func([]byte) bool) {
			for _, name := range slices.Sorted(maps.Keys(documents)) {
				if !yield(documents[name]) {
					return
				}
			}
		}), []byte("---\n"))
	}
	unread := slices.Sorted(slices.Values(b.Unread))
	if len(unread) == 0 {
		unread = []string{"everything could be read"}
	}
	all["errors.txt"] = []byte(strings.Join(unread, "\n") + "\n")
	return all
}

// Write writes the archive, which is a compressed tar file.
func (b *Bundle) Write(out io.Writer) error {
	packed := gzip.NewWriter(out)
	archive := tar.NewWriter(packed)
	content := b.content()
	for _, path := range slices.Sorted(maps.Keys(content)) {
		header := &tar.Header{Name: root + path, Mode: 0o644, Size: int64(len(content[path])), ModTime: b.at.Truncate(time.Second)}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content[path]); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}
