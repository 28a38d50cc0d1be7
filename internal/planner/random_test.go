// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/samber/lo"
	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

var (
	sometimes, rarely = property.OneIn(4), property.OneIn(16)
	// past is a time in the last hour.
	past = rapid.Map(rapid.IntRange(0, 119), func(i int) time.Time { return now.Add(-time.Duration(i) * time.Minute / 2) })
	// nearby is a time at which a short wait begins or ends.
	nearby = rapid.Map(rapid.IntRange(-120, 119), func(i int) time.Time { return now.Add(time.Duration(i) * time.Second) })
)

// randomState is a state with links to claims that exist and to claims that do not, and with several links to one claim.
var randomState = rapid.Custom(func(t *rapid.T) State {
	return State{
		Claims:   upTo7(t, "c", randomClaim),
		Machines: upTo7(t, "m", randomMachine),
		Replicas: rapid.Int32Range(0, 11).Draw(t, "replicas"),
	}
})

// upTo7 draws objects with numbered names.
func upTo7[T any](t *rapid.T, prefix string, draw func(t *rapid.T, name string) T) []T {
	count := 0
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) T {
		count++
		return draw(t, fmt.Sprint(prefix, count-1))
	}), 0, 7).Draw(t, prefix)
}

func randomClaim(t *rapid.T, name string) Claim {
	c := claim(name, rapid.IntRange(0, 3).Draw(t, "created"))
	switch rapid.IntRange(0, 3).Draw(t, "phase") {
	case 2:
		c = c.gone()
	case 3:
		c = c.registered(fmt.Sprintf("real://m%d", rapid.IntRange(0, 7).Draw(t, "machine")))
	}
	return c
}

func randomMachine(t *rapid.T, name string) Machine {
	m := machine(name, rapid.IntRange(0, 3).Draw(t, "created"))
	if rapid.Bool().Draw(t, "linked") {
		m = m.serves(fmt.Sprintf("c%d", rapid.IntRange(0, 9).Draw(t, "claim")))
	}
	if rapid.Bool().Draw(t, "launched") {
		m.ProviderID = "real://" + m.Name
		m.HasNode = rapid.Bool().Draw(t, "has a Node")
	}
	m.Leaving = sometimes.Draw(t, "leaving")
	if property.OneIn(8).Draw(t, "fails") {
		m = m.fails()
	}
	if rapid.Bool().Draw(t, "expired") {
		m = m.expired()
	}
	return m
}

// randomLaunches is a state in which launches take as long as they like, fail, stall and are limited.
var randomLaunches = rapid.Custom(func(t *rapid.T) *State {
	state := complete(randomState.Draw(t, "state"))
	state.Durations.LaunchTimeout = 10 * time.Minute
	state.UpSince, state.Stall, state.Exists = past.Draw(t, "up since"), randomStall.Draw(t, "stall"), !sometimes.Draw(t, "does not exist")
	state.ClusterDeleting, state.Suspended = rarely.Draw(t, "Cluster deleting"), rarely.Draw(t, "suspended")
	state.Unusable = lo.Ternary(rarely.Draw(t, "unusable"), "its provider makes no Machines", "")
	state.Scaling = randomScaling(t, state.Replicas)
	state.ProgressedAt = past.Draw(t, "progressed at")
	for i := range state.Machines {
		machine := &state.Machines[i]
		machine.InstanceGone = sometimes.Draw(t, "instance gone")
		if machine.Leaving {
			machine.LeavingSince, machine.Marked, machine.Hooked = nearby.Draw(t, "leaving since"), sometimes.Draw(t, "marked"), sometimes.Draw(t, "hooked")
		}
		machine.Created, machine.ResumedAt, machine.Stall = past.Draw(t, "created"), time.Time{}, randomStall.Draw(t, "stall")
	}
	for i := range state.Claims {
		claim := &state.Claims[i]
		claim.Created, claim.WaitsSince = past.Draw(t, "created"), past.Draw(t, "waits since")
		claim.OverLimit, claim.Stalled = sometimes.Draw(t, "over limit"), sometimes.Draw(t, "stalled")
	}
	return state
})

var randomStall = rapid.Custom(func(t *rapid.T) Stall {
	if !sometimes.Draw(t, "stalled") {
		return Stall{}
	}
	if sometimes.Draw(t, "blocked") {
		return Stall{Reason: v1alpha1.ReasonBlocked, Message: "waits"}
	}
	return lo.Ternary(rapid.Bool().Draw(t, "silent"), Silence, NoProgress)("waits")
})

func randomScaling(t *rapid.T, replicas int32) Scaling {
	switch rapid.IntRange(0, 2).Draw(t, "scaling") {
	case 1:
		set := MachineSet{Replicas: replicas, Blocked: sometimes.Draw(t, "blocked"), Behind: sometimes.Draw(t, "behind")}
		if sometimes.Draw(t, "lowered") {
			set.LoweredAt = nearby.Draw(t, "lowered at")
		}
		return set
	case 2:
		return Pool{Unready: sometimes.Draw(t, "unready"), ReplicasSetAt: nearby.Draw(t, "replicas set at"), SettlesAt: nearby.Draw(t, "settles at")}
	}
	return nil
}

// GoString is what rapid prints.
func (s State) GoString() string { return short(reflect.ValueOf(s)) }

// GoString is what rapid prints.
func (c Claim) GoString() string { return short(reflect.ValueOf(c)) }

// GoString is what rapid prints.
func (m Machine) GoString() string { return short(reflect.ValueOf(m)) }

// short returns the fields that are not zero, and how long before or after now times are.
func short(v reflect.Value) string {
	if at, isTime := v.Interface().(time.Time); isTime {
		return at.Sub(now).String()
	}
	switch v.Kind() {
	case reflect.Interface:
		return v.Elem().Type().Name() + short(v.Elem())
	case reflect.Slice:
		return "[" + strings.Join(lo.Times(v.Len(), func(i int) string { return "\n\t" + short(v.Index(i)) }), "") + "]"
	case reflect.Struct:
		var fields []string
		for field, value := range v.Fields() {
			if !value.IsZero() && (value.Kind() != reflect.Slice || value.Len() > 0) {
				fields = append(fields, field.Name+": "+short(value))
			}
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	return fmt.Sprint(v)
}
