// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// progress shows how a step goes: on a terminal as one line that changes, else as
// a line each time something has changed, at most every few seconds.
type progress struct {
	started  time.Time
	terminal bool
	last     string
	lastAt   time.Time
}

const quietFor = 2 * time.Second

func newProgress() *progress {
	return &progress{started: time.Now(), terminal: term.IsTerminal(int(os.Stdout.Fd()))}
}

// step begins a step of the story.
func (p *progress) step(text string) {
	p.end()
	fmt.Printf("\n==> %s\n", text)
}

// show tells of the state.
func (p *progress) show(state string) {
	line := fmt.Sprintf("    %4.0fs  %s", time.Since(p.started).Seconds(), state)
	switch {
	case p.terminal:
		fmt.Printf("\r\033[K%s", line)
	case state != p.last && time.Since(p.lastAt) > quietFor:
		fmt.Println(line)
		p.lastAt = time.Now()
	default:
		return
	}
	p.last = state
}

// end ends the changing line.
func (p *progress) end() {
	if p.terminal && p.last != "" {
		fmt.Println()
	}
	p.last = ""
}

// done tells of the state with which a step ends.
func (p *progress) done(state string) {
	line := fmt.Sprintf("    %4.0fs  %s", time.Since(p.started).Seconds(), state)
	if p.terminal {
		fmt.Print("\r\033[K")
	}
	fmt.Println(line)
	p.last = ""
}
