// SPDX-License-Identifier: Apache-2.0

//go:build browser

package main

import (
	"bytes"
	"context"
	"image"
	"image/color"
	_ "image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// within ends a browser that does not end by itself.
const within = time.Minute

// In a browser, pages have no errors, show their text, and find what a reader looks for.
func TestBrowser(t *testing.T) {
	out := t.TempDir()
	if err := build(repository, out); err != nil {
		t.Fatal(err)
	}
	b := &browser{program: program(t), site: out}
	for search, want := range map[string]string{
		"":                          "",
		"volumeAttachmentLimits":    "guides/catalogs.html",
		"migrate":                   "migrate.html",                        // the title comes first
		"drift":                     "guides/upgrades.html",                // and pages for users before those for contributors
		"HANDLER spot":              "guides/repair-and-interruption.html", // in any case
		"a-word-that-no-page-has":   "",
		"MachineReady registration": "failures.html",
	} {
		t.Run(search, func(t *testing.T) {
			found := b.search(t, search)
			if want == "" && len(found) > 0 || want != "" && !slices.Contains(found, want) {
				t.Errorf("found %q, want %q", found, want)
			}
			if len(found) > 0 && (strings.HasPrefix(found[0], "design/") || search == "migrate" && found[0] != want) {
				t.Errorf("found %s first", found[0])
			}
		})
	}
	for _, page := range []string{"index.html", "guides/catalogs.html", "reference/template.html"} {
		for _, width := range []string{"1280", "400"} {
			t.Run(page+" with a width of "+width, func(t *testing.T) {
				b.look(t, page, width)
			})
		}
	}
}

// program returns the browser that is installed.
func program(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("expected one of the programs %q, found none: install the package chromium", names)
	return ""
}

type browser struct{ program, site string }

// open opens a page, and returns what the browser prints. Errors of scripts and files that are missing fail the test.
func (b *browser) open(t *testing.T, page, query string, arguments ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	address := url.URL{Scheme: "file", Path: filepath.Join(b.site, page), RawQuery: query}
	// Without a user of its own it could not use a sandbox, and the pages are those of this repository.
	command := exec.CommandContext(ctx, b.program, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--user-data-dir=" + t.TempDir(),
	}, append(arguments, address.String())...)...)
	var messages bytes.Buffer
	command.Stderr = &messages
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", page, err, &messages)
	}
	for line := range strings.Lines(messages.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("%s: %s", page, line)
		}
	}
	return printed
}

// search returns the pages that a search finds, in their order.
func (b *browser) search(t *testing.T, words string) []string {
	t.Helper()
	document, err := html.Parse(bytes.NewReader(b.open(t, "index.html", url.Values{"q": {words}}.Encode(), "--dump-dom")))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for node := range document.Descendants() {
		if node.Data != "ul" || !slices.Contains(node.Attr, html.Attribute{Key: "id", Val: "found"}) {
			continue
		}
		for link := range node.Descendants() {
			for _, attribute := range link.Attr {
				if attribute.Key == "href" {
					found = append(found, attribute.Val)
				}
			}
		}
	}
	return found
}

// look takes a picture of a page, which must have a background and text, and nothing beyond its right edge.
func (b *browser) look(t *testing.T, page, width string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.png")
	b.open(t, page, "", "--screenshot="+file, "--window-size="+width+",900")
	content, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	picture, _, err := image.Decode(content)
	if err != nil {
		t.Fatal(err)
	}
	bounds := picture.Bounds()
	background := picture.At(bounds.Max.X-1, bounds.Max.Y-1)
	text, edge := 0, 0
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			if !near(picture.At(x, y), background) {
				text++
				if x >= bounds.Max.X-2 {
					edge++
				}
			}
		}
	}
	if share := float64(text) / float64(bounds.Dx()*bounds.Dy()); share < 0.01 || share > 0.6 {
		t.Errorf("%.1f %% of the picture are not background, want text on a background", 100*share)
	}
	if edge > 0 {
		t.Errorf("%d pixels at the right edge are not background: something is wider than the page", edge)
	}
}

// near reports whether two colors look the same.
func near(a, b color.Color) bool {
	r1, g1, b1, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	far := func(x, y uint32) bool { return max(x, y)-min(x, y) > 0x1800 }
	return !far(r1, r2) && !far(g1, g2) && !far(b1, b2)
}
