// SPDX-License-Identifier: Apache-2.0

//go:build contract

package contract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stacktest"
)

const (
	// patience is how long a check waits for what must happen.
	patience = 3 * time.Minute
	// poll is how often it looks.
	poll = 100 * time.Millisecond
	// still is for how long it looks whether something does not happen, after Cluster API has acted.
	still = 3 * time.Second
)

// namespace is that of all objects.
const namespace = stack.ClusterNamespace

// check is the check of a fact. It ends at the first expectation that does not hold.
type check func(ctx context.Context, g Gomega, w *world)

// checks has the check of each fact, by its name.
var checks = map[string]check{
	"LeavingMachinesCount":            leavingMachinesCount,
	"ReplacedWhenGone":                replacedWhenGone,
	"MarkedFirst":                     markedFirst,
	"WithoutNodeNext":                 withoutNodeNext,
	"NewestWithNode":                  newestWithNode,
	"EqualWithoutNode":                equalWithoutNode,
	"ObservedAfterActing":             observedAfterActing,
	"FailureStaysBehind":              failureStaysBehind,
	"BlockedByTemplate":               blockedByTemplate,
	"BlockedByPreflight":              blockedByPreflight,
	"BlockedByVersion":                blockedByVersion,
	"SkippedByAnnotation":             skippedByAnnotation,
	"SkippedByTemplate":               skippedByTemplate,
	"RaisedInSteps":                   raisedInSteps,
	"PassedOnStays":                   passedOnStays,
	"OnDeleteKeepsMachines":           onDeleteKeepsMachines,
	"ChangedInPlace":                  changedInPlace,
	"AcceptedUnchanged":               acceptedUnchanged,
	"DeletedSetCreatesNothing":        deletedSetCreatesNothing,
	"DeletedDeploymentCreatesNothing": deletedDeploymentCreatesNothing,
	"DrainHookWithNode":               drainHookWithNode,
	"DrainHookWithoutNode":            drainHookWithoutNode,
	"TerminateHook":                   terminateHook,
	"ClusterDeletion":                 clusterDeletion,
	"DrainEnds":                       drainEnds,
	"InfrastructureDeleted":           infrastructureDeleted,
	"OrphanStays":                     orphanStays,
	"NodeDeleted":                     nodeDeleted,
	"NodeLinked":                      nodeLinked,
	"ProviderIDFollows":               providerIDFollows,
	"PausedDeployment":                pausedDeployment,
	"PausedCluster":                   pausedCluster,
	"PoolMachines":                    poolMachines,
	"PoolTerminateHook":               poolTerminateHook,
	"PoolChangedInPlace":              poolChangedInPlace,
	"PoolNodeDeleted":                 poolNodeDeleted,
}

// world is a stack without the operator.
type world struct {
	client.WithWatch
	stack *stack.Stack
}

// problem is the message of an expectation that does not hold.
type problem string

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// Each fact has one check, and each check one fact.
func TestFactsHaveChecks(t *testing.T) {
	names := map[string]bool{}
	for _, fact := range Facts {
		names[fact.Name] = true
		if checks[fact.Name] == nil {
			t.Errorf("fact %s has no check", fact.Name)
		}
	}
	for name := range checks {
		if !names[name] {
			t.Errorf("check %s has no fact", name)
		}
	}
}

// Every fact holds in the version of Cluster API, or is known not to hold there.
func TestContract(t *testing.T) {
	w, version := newWorld(t)
	results, mutex := Results{}, sync.Mutex{}
	t.Cleanup(func() {
		if file := os.Getenv(ResultsVariable); file != "" {
			if err := results.Write(file); err != nil {
				t.Error(err)
			}
		}
	})
	for _, fact := range Facts {
		t.Run(fact.Name, func(t *testing.T) {
			t.Parallel()
			found := w.find(t.Context(), checks[fact.Name])
			mutex.Lock()
			results[fact.Name], _, _ = strings.Cut(found, "\n")
			mutex.Unlock()
			switch copes := fact.DiffersIn(version); {
			case copes == "" && found != "":
				t.Errorf("%s does not hold: %s\n%s", fact.Name, fact.Text, found)
			case copes != "" && found == "":
				t.Errorf("%s holds now: remove its difference in %s from Facts", fact.Name, version)
			case copes != "":
				t.Logf("%s does not hold, as expected: %s\n%s", fact.Name, copes, found)
			}
		})
	}
}

// newWorld starts a stack that ends with the test, and returns the version of its Cluster API.
func newWorld(t *testing.T) (*world, string) {
	t.Helper()
	s := stacktest.Up(stacktest.Context(t), t, stack.Options{WithoutOperator: true})
	config, err := clientcmd.BuildConfigFromFlags("", s.ManagementKubeconfig())
	scheme, schemeErr := stack.NewScheme()
	if err := errors.Join(err, schemeErr); err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &world{WithWatch: c, stack: s}, s.ClusterAPIVersion()
}

// find returns what a check has found; empty if everything that it expects holds.
func (w *world) find(ctx context.Context, check check) (found string) {
	defer func() {
		if p := recover(); p != nil {
			is, expected := p.(problem)
			if !expected {
				panic(p)
			}
			found = string(is)
		}
	}()
	g := NewGomega(func(message string, _ ...int) { panic(problem(message)) })
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(poll)
	g.SetDefaultConsistentlyDuration(still)
	g.SetDefaultConsistentlyPollingInterval(poll)
	check(ctx, g, w)
	return ""
}

// change changes an object as it is in the API server.
func change[T client.Object](ctx context.Context, g Gomega, w *world, object T, change func(T)) {
	key := client.ObjectKeyFromObject(object)
	g.Eventually(func() error {
		if err := w.Get(ctx, key, object); err != nil {
			return err
		}
		change(object)
		return w.Update(ctx, object)
	}).Should(Succeed(), func() string { return fmt.Sprintf("changing %T %s", object, key) })
}

// named returns the names of objects, in alphabetical order.
func named[T any, P interface {
	*T
	client.Object
}](objects []T) []string {
	names := []string{}
	for i := range objects {
		names = append(names, P(&objects[i]).GetName())
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}
