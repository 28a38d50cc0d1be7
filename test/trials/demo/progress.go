// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// progress shows the progress of a step: on a terminal as one line that changes, otherwise as a line from time to time.
type progress struct {
	began    time.Time
	terminal bool

	// What was shown last and when; empty when the step is done.
	last   string
	lastAt time.Time
}

// Without a terminal, a line is written this long after the last one, if something has changed or if nothing has.
const (
	changedAfter   = 2 * time.Second
	unchangedAfter = 15 * time.Second
)

func newProgress() *progress {
	return &progress{began: time.Now(), terminal: term.IsTerminal(int(os.Stdout.Fd()))}
}

// step begins a step of the story.
func (p *progress) step(text string) {
	fmt.Printf("\n==> %s\n", text)
}

// show prints the state.
func (p *progress) show(state string) {
	since := time.Since(p.lastAt)
	switch {
	case p.terminal:
		fmt.Print("\r\033[K", p.fit(p.line(state)))
	case p.last == "", since > unchangedAfter, state != p.last && since > changedAfter:
		fmt.Println(p.line(state))
		p.lastAt = time.Now()
	}
	p.last = state
}

// done prints the state at the end of a step, once.
func (p *progress) done(state string) {
	if p.last == "" {
		return
	}
	if p.terminal {
		fmt.Print("\r\033[K")
	}
	fmt.Println(p.line(state))
	p.last = ""
}

func (p *progress) line(state string) string {
	return fmt.Sprintf("    %4.0fs  %s", time.Since(p.began).Seconds(), state)
}

// fit shortens a line that the terminal would wrap, because only its last row would be overwritten.
func (p *progress) fit(line string) string {
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && width > 0 && len(line) >= width {
		return line[:width-1]
	}
	return line
}
