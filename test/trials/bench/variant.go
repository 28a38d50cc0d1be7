// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"
)

// size is the size of a run.
type size struct {
	// n is the number of Pods, each of which needs its own Node.
	n int
	// offerings is the number of offerings that the Pods are spread over.
	offerings int
	// every is how long after each other the Pods are created; zero for all at once.
	every time.Duration
	// waves is how many Pods are created at once, each time when all earlier ones run; zero for all.
	waves int
	// standing is how many Nodes exist before the Pods are created, and stay.
	standing int
	// catalog is whether a large InstanceTypeCatalog is added before the Pods are created. It stays.
	catalog bool
}

// paced is a load with which no process is busy, so that durations show what a user waits for.
var paced = size{n: 60, offerings: 1, every: 2 * time.Second}

// String implements fmt.Stringer.
func (s size) String() string {
	text := fmt.Sprint(s.n)
	if s.n == 1 {
		text += " Pod"
	} else {
		text += " Pods"
	}
	if s.offerings > 1 {
		text += fmt.Sprintf(" in %d offerings", s.offerings)
	}
	if s.every > 0 {
		text += fmt.Sprintf(", one every %s", s.every)
	}
	if s.waves > 0 {
		text += fmt.Sprintf(", %d at a time", s.waves)
	}
	if s.standing > 0 {
		text += fmt.Sprintf(" beside %d Nodes", s.standing)
	}
	return text
}

// load is how the flag -n names it.
func (s size) load() string {
	text := fmt.Sprint(s.n)
	switch {
	case s.every > 0:
		text += fmt.Sprintf("@%s", s.every)
	case s.waves > 0:
		text += fmt.Sprintf(":%d", s.waves)
	}
	if s.standing > 0 {
		text = fmt.Sprintf("%d+%s", s.standing, text)
	}
	return text
}

// variant is one of the systems that are measured.
type variant struct {
	// name is what users call it.
	name string
	// component is the process of the stack that contains Karpenter; empty if there is none.
	component string
	// agent is the user agent of that process.
	agent string
	// prepare creates everything except the Pods, or whatever else is scaled.
	prepare func(ctx context.Context, t *trial) error
	// scale sets the number of Pods, or of replicas.
	scale func(ctx context.Context, t *trial, n int) error
	// up are the sets that have one object for each Pod when the scale-up is complete, and settled those that have one
	// when nothing is left to do.
	up, settled []tallyName
}

// variants are all variants in the order in which they run.
var variants = []variant{kwok, clusterAPI, operator}
