// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const (
	// maxOperations is the maximum number of operations of all patches of a template. The CRD has it, too.
	maxOperations = 1000
	// maxPatches is the maximum number of bytes of all patches of a template, and of what they render to for one
	// offering. An object of the API server has at most 1.5 MiB.
	maxPatches = 256 << 10
	// maxTemplate is the maximum number of characters of a Go template, as in the CRD.
	maxTemplate = 10240
	// maxSize is the maximum size of a value in a Go template, and of what a Go template renders to: its bytes, and
	// overhead bytes for each value in it.
	maxSize, overhead = 64 << 10, 16
	// maxWork is the maximum of what the patches process for one offering: the sizes of the arguments and results of all
	// functions, and for each item of a range, itemCost bytes for each byte of its text.
	maxWork, itemCost = 1 << 20, 4
)

// checkTotals returns an error if patches are too many or too large.
func checkTotals(patches []v1alpha1.Patch) error {
	operations, bytes := 0, 0
	for i := range patches {
		operations += len(patches[i].JSONPatches)
		bytes += len(patches[i].EnabledIf)
		for j := range patches[i].JSONPatches {
			operation := &patches[i].JSONPatches[j]
			bytes += len(operation.Path)
			if operation.Value != nil {
				bytes += len(operation.Value.Raw)
			}
			if operation.ValueFrom != nil {
				bytes += len(operation.ValueFrom.Template)
			}
		}
	}
	var errs []error
	if operations > maxOperations {
		errs = append(errs, fmt.Errorf("spec.patches have %d operations, and at most %d are allowed", operations, maxOperations))
	}
	if bytes > maxPatches {
		errs = append(errs, fmt.Errorf("spec.patches have %d bytes, and at most %d are allowed", bytes, maxPatches))
	}
	return errors.Join(errs...)
}

// budget is what the patches may still use for one offering.
type budget struct {
	work, text int
}

func (b *budget) reset() { *b = budget{work: maxWork, text: maxPatches} }

// spend takes work from the budget.
func (b *budget) spend(work int) error {
	if b.work -= min(work, maxWork+1); b.work < 0 {
		return errors.New("the functions and ranges of all patches process more than 1 MiB for one offering")
	}
	return nil
}

// within returns a function that does the same, but fails if its arguments or its result are too large, or if the
// budget is used up. A call costs extra bytes more for each argument.
func (b *budget) within(function any, extra int) any {
	value := reflect.ValueOf(function)
	from := value.Type()
	in := make([]reflect.Type, from.NumIn())
	for i := range in {
		in[i] = from.In(i)
	}
	call := value.Call
	if from.IsVariadic() {
		call = value.CallSlice
	}
	limited := reflect.FuncOf(in, []reflect.Type{from.Out(0), reflect.TypeFor[error]()}, from.IsVariadic())
	return reflect.MakeFunc(limited, func(arguments []reflect.Value) []reflect.Value {
		err := b.take("its arguments", extra, arguments...)
		result := reflect.Zero(from.Out(0))
		if err == nil {
			results := call(arguments)
			result = results[0]
			if len(results) > 1 && !results[1].IsNil() {
				err = results[1].Interface().(error)
			} else {
				err = b.take("its result", 0, result)
			}
		}
		failed := reflect.Zero(reflect.TypeFor[error]())
		if err != nil {
			result, failed = reflect.Zero(from.Out(0)), reflect.ValueOf(&err).Elem()
		}
		return []reflect.Value{result, failed}
	}).Interface()
}

// take takes the sizes of values from the budget.
func (b *budget) take(name string, extra int, values ...reflect.Value) error {
	size := 0
	for _, value := range values {
		if size += sizeOf(value, maxSize-size); size > maxSize {
			return tooLarge(name)
		}
	}
	return b.spend(size + extra*len(values))
}

func tooLarge(name string) error { return fmt.Errorf("%s would be larger than 64 KiB", name) }

// sizeOf returns the size of a value, with all that it contains as often as it contains it. It stops above the limit.
func sizeOf(value reflect.Value, limit int) int {
	size := overhead
	switch value.Kind() {
	case reflect.String:
		size += value.Len()
	case reflect.Interface:
		return sizeOf(value.Elem(), limit)
	case reflect.Slice:
		for i := 0; i < value.Len() && size <= limit; i++ {
			size += sizeOf(value.Index(i), limit-size)
		}
	case reflect.Map:
		for entries := value.MapRange(); size <= limit && entries.Next(); {
			size += sizeOf(entries.Key(), limit-size)
			size += sizeOf(entries.Value(), limit-size)
		}
	}
	return size
}

// items returns the value of a range, and takes from the budget what its items cost. Without a map or a list, it fails.
func (b *budget) items(text int, value any) (any, error) {
	items := reflect.ValueOf(value)
	switch items.Kind() {
	case reflect.Invalid: // nil has no items
		return value, nil
	case reflect.Slice, reflect.Map:
		return value, b.spend(items.Len() * text * itemCost)
	}
	return nil, fmt.Errorf("range needs a list or a map, and this is of type %s", items.Type())
}

// text is what a Go template renders to.
type text struct {
	strings.Builder
	budget *budget
}

func (t *text) Write(p []byte) (int, error) {
	if t.Len()+len(p) > maxSize {
		return 0, errors.New("it renders to more than 64 KiB")
	}
	if t.budget.text -= len(p); t.budget.text < 0 {
		return 0, errors.New("the patches render to more than 256 KiB for one offering")
	}
	return t.Builder.Write(p)
}
