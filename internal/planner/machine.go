// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"time"

	"github.com/samber/lo"
)

// busyFactor is how many times longer than otherwise a silent stall may last before it is reported, if Machines of
// other resources progress.
const busyFactor = 10

// isLost reports whether a Machine that is not leaving has lost its instance. It never becomes a Node, so it counts as
// leaving, and is marked.
func (m Machine) isLost() bool { return m.InstanceGone && !m.Leaving }

// leaves reports whether a Machine is leaving, ends with its owner or has lost its instance, so that it is not live.
func (m Machine) leaves() bool { return m.Leaving || m.Ending || m.InstanceGone }

// startedAt returns the time from which Cluster API could act on a Machine.
func (s *State) startedAt(m Machine) time.Time { return lo.Latest(m.Created, m.ResumedAt, s.UpSince) }

// MayStall reports whether a Machine is old enough that a controller must have acted on it.
func (s *State) MayStall(m Machine) bool {
	return !s.Now.Before(s.startedAt(m).Add(s.progressTimeout()))
}

// progressTimeout returns for how long nothing may act on an object before its launch is stalled.
func (s *State) progressTimeout() time.Duration {
	return min(s.Durations.NoProgress, s.Durations.LaunchTimeout)
}

// silenceTimeout returns for how long a claim may wait at most before a silent stall is reported, however busy the
// controllers are. It leaves half of launchTimeoutSeconds, because an unreported stall does not extend that.
func (s *State) silenceTimeout() time.Duration {
	return max(s.progressTimeout(), min(busyFactor*s.Durations.NoProgress, s.Durations.LaunchTimeout/2))
}

// unfit returns why a Machine without a claim cannot serve a claim later; empty if it can. launchTimeoutSeconds does
// not run while nothing acts on the Machine.
func (s *State) unfit(m Machine) Reason {
	switch {
	case m.HasNode:
		return ""
	case m.Failure.Kind != "":
		return HasFailed
	case m.Stall.Reason == "" && !s.Now.Before(s.startedAt(m).Add(s.Durations.LaunchTimeout)):
		return TookTooLong
	}
	return ""
}

// expiresAt returns when a Machine without a link has been spare for spareTTLSeconds.
func (s *State) expiresAt(m Machine) time.Time {
	return lo.Latest(m.SpareSince, s.UpSince).Add(s.Durations.SpareTTL)
}

// expired reports whether a Machine without a link has been spare for spareTTLSeconds. A Machine with a Node
// first gets the annotation spare-since, because its age does not show since when it is spare.
func (s *State) expired(m Machine) bool {
	return (!m.HasNode || m.WasLinked) && !s.Now.Before(s.expiresAt(m))
}

// markSeenAt returns when the infrastructure provider must have seen that a leaving Machine is marked.
func (s *State) markSeenAt(m Machine) time.Time { return m.LeavingSince.Add(s.Durations.Settle) }

// markSeen reports whether the infrastructure provider must have seen that a Machine is marked.
func (s *State) markSeen(m Machine) bool { return m.Marked && !s.Now.Before(s.markSeenAt(m)) }
