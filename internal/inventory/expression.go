// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/patrickmn/go-cache"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	// mostCost is the most that the evaluation of one expression for one object may cost, in the units of Kubernetes: about a
	// millisecond.
	mostCost = 10_000
	// object is the variable of expressions.
	object = "object"
)

// libraries is the version of Kubernetes whose functions expressions can use. It is fixed, so that an expression does not depend on
// the version of the operator's own libraries.
var libraries = version.MajorMinor(1, 35)

// env is the environment of all expressions. It takes some milliseconds to set up.
var env = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(libraries).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable(object, cel.DynType)},
	}, environment.StrictCostOpt)
	if err != nil {
		return nil, err
	}
	return set.NewExpressionsEnv(), nil
})

// mostCompiled is how many programs are kept.
const mostCompiled = 1000

// compiled are the programs of expressions: a catalog has the same expression in many offerings.
var compiled = cache.New(time.Hour, time.Hour)

// compile returns the program of an expression.
func compile(expression string) (cel.Program, error) {
	if known, found := compiled.Get(expression); found {
		return known.(cel.Program), nil
	}
	in, err := env()
	if err != nil {
		return nil, err
	}
	tree, issues := in.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("the expression does not compile: %s", oneLine(err))
	}
	program, err := in.Program(tree, cel.CostLimit(mostCost))
	if err != nil {
		return nil, fmt.Errorf("the expression does not compile: %s", oneLine(err))
	}
	if compiled.ItemCount() < mostCompiled {
		compiled.SetDefault(expression, program)
	}
	return program, nil
}

// oneLine returns the text of an error without the lines that show the place in the expression.
func oneLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimPrefix(text, "ERROR: ")
}

// result is what the expressions of a source say about one object.
type result struct {
	free int64
	// number reports whether free is a number, and not whether the object is free.
	number bool
	// consumer is the name of a Machine, or of its infrastructure object.
	consumer string
	// failed is why an expression has no result; empty if all have one.
	failed string
}

// evaluate returns what the expressions of a source say about an object.
func (s Source) evaluate(content map[string]any) result {
	var found result
	value, err := run(s.Free, content)
	if err != nil {
		return result{failed: "free: " + err.Error()}
	}
	switch value := value.(type) {
	case bool:
		if value {
			found.free = 1
		}
	case int64:
		found.free, found.number = min(max(0, value), math.MaxInt32), true
	case uint64:
		found.free, found.number = int64(min(value, math.MaxInt32)), true
	case float64:
		if math.IsNaN(value) {
			return result{failed: "free: the result is no number"}
		}
		found.free, found.number = int64(min(max(0, value), math.MaxInt32)), true
	default:
		return result{failed: fmt.Sprintf("free: the result must be a bool or a number, found %T", value)}
	}
	if s.Consumer == "" {
		return found
	}
	if value, err = run(s.Consumer, content); err != nil {
		return result{failed: "consumer: " + err.Error()}
	}
	name, isText := value.(string)
	if !isText {
		return result{failed: fmt.Sprintf("consumer: the result must be a string, found %T", value)}
	}
	found.consumer = name
	return found
}

// run evaluates an expression.
func run(expression string, content map[string]any) (any, error) {
	program, err := compile(expression)
	if err != nil {
		return nil, err
	}
	var value ref.Val
	value, _, err = program.Eval(map[string]any{object: content})
	if err != nil {
		return nil, errors.New(oneLine(err))
	}
	return value.Value(), nil
}
