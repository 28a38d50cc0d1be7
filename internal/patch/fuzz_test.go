// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"flag"
	"fmt"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// FuzzTemplate renders any text as a condition and as a value. Without -fuzz, go test renders the corpus.
func FuzzTemplate(f *testing.F) {
	for _, tc := range functionCases {
		f.Add(tc.template)
	}
	for _, tc := range unbounded {
		f.Add(tc.template)
	}
	for _, yaml := range []string{"[1,", "- ", "a:\n", "? a\n", "- #\n ", "{a: ", `"\n`, "!a ", "0x1, ", "|\n \n", "---\n", "%TAG !a! b:\n"} {
		f.Add(fmt.Sprintf("[{{ repeat 5000 %q }}]", yaml))
	}
	f.Fuzz(func(t *testing.T, template string) { renderWithinBounds(t, template) })
}

// FuzzProgram renders Go templates that are valid: sequences of assignments and ranges, where the results of functions are the
// arguments of others.
func FuzzProgram(f *testing.F) {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range functionCases {
			if !yield(name) {
				return
			}
		}
	})
	f.Add([]byte("0123456789abcdef0123456789abcdef0123456789abcdef"))
	for i := range names { // each function doubles its result
		f.Add([]byte(strings.Repeat(string([]byte{2, byte(i), 0, 0, 0}), 40)))
		f.Add(append([]byte{0, 0, 0, 0, 0, 0}, strings.Repeat(string([]byte{2, byte(i), 3, 0, 0, 0}), 40)...))
	}
	f.Fuzz(func(t *testing.T, program []byte) { renderWithinBounds(t, templateOf(program, names)) })
}

// templateOf returns the Go template that bytes stand for.
func templateOf(program []byte, names []string) string {
	next := func() int {
		if len(program) == 0 {
			return 0
		}
		first := program[0]
		program = program[1:]
		return int(first)
	}
	operands := []string{
		"$a", "$b", "$c", "$d", ".labels", ".zone", "1", "40", "0.5", `""`, `"x"`, `"%s%v"`, `","`, "1e300", "9000000000000000000", `">=1 || <2"`,
	}
	operand := func() string { return operands[next()%len(operands)] }
	built := strings.Builder{}
	built.WriteString(`{{ $a := "abcdefgh" }}{{ $b := list 1 "b" .zone }}{{ $c := dict "a" "b" "c" 1 }}{{ $d := splitList "" "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx" }}`)
	open := 0
	for len(program) > 0 && built.Len() < 10000 {
		switch next() % 8 {
		case 0:
			fmt.Fprintf(&built, "{{ range %s }}", operand())
			open++
		case 1:
			if open > 0 {
				built.WriteString("{{ end }}")
				open--
			}
		case 2, 3, 4, 5:
			fmt.Fprintf(&built, "{{ %s = %s", operands[next()%4], names[next()%len(names)])
			for range 1 + next()%4 {
				built.WriteString(" " + operand())
			}
			built.WriteString(" }}")
		case 6:
			fmt.Fprintf(&built, "{{ $b = list %s %s }}", operand(), operand())
		case 7:
			fmt.Fprintf(&built, "{{ %s }}", operand())
		}
	}
	return built.String() + strings.Repeat("{{ end }}", open)
}

// renderWithinBounds fails if the patches with a Go template take longer than a second, or more than 64 MiB, or if they
// render to something else the second time.
func renderWithinBounds(t *testing.T, template string) {
	t.Helper()
	patches := []v1alpha1.Patch{infrastructure(template, v1alpha1.JSONPatch{Op: "add", Path: "/spec/x", Value: raw("1")}), added(template)[0]}
	render := func() string {
		compiled, err := Compile(patches)
		if err != nil {
			return err.Error()
		}
		operations, err := compiled.Render(v1alpha1.PatchTargetInfrastructure, variables)
		if err != nil {
			return err.Error()
		}
		if operations.Empty() {
			return ""
		}
		if _, err := operations.Apply(base()); err != nil {
			return err.Error()
		}
		return operations.Key()
	}
	before, start := allocated(), time.Now()
	first := render()
	most := time.Second
	if flag.Lookup("test.fuzz").Value.String() == "" { // beside other tests, and perhaps with the race detector
		most = 10 * time.Second
	}
	if took := time.Since(start); took > most {
		t.Errorf("it took %s: %q", took, template)
	}
	if bytes := allocated() - before; bytes > 64<<20 {
		t.Errorf("it allocated %d MiB: %q", bytes>>20, template)
	}
	if second := render(); second != first {
		t.Errorf("got %q the first time, and %q the second time, for %q", first, second, template)
	}
}

// allocated returns how many bytes were allocated since the process started: at least as many as are needed at the same time.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
