// SPDX-License-Identifier: Apache-2.0

package precondition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Write writes the difference between two versions of an object, but not of its status, if the
// API server still has the one that was read. Otherwise it writes nothing and returns a conflict, or an
// error for which IsGone is true. It is for writes that depend on the whole object, or to a list, which a
// merge patch replaces as a whole. doing is what the error says before the object, such as "patching".
func Write(ctx context.Context, c client.Client, read, changed client.Object, doing string) error {
	return describe(read, doing, c.Patch(ctx, changed, ifUnchanged(read)))
}

// WriteStatus is Write for the status of an object.
func WriteStatus(ctx context.Context, c client.Client, read, changed client.Object, doing string) error {
	return describe(read, doing, c.Status().Patch(ctx, changed, ifUnchanged(read)))
}

func ifUnchanged(read client.Object) client.Patch {
	return client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
}

// describe returns the error of a write with what was done to which object.
func describe(object client.Object, doing string, err error) error {
	if err == nil {
		return nil
	}
	// Objects of Go types usually lack their kind, which is the name of the type.
	kind := cmp.Or(object.GetObjectKind().GroupVersionKind().Kind, reflect.TypeOf(object).Elem().Name())
	name := strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/") // without a namespace
	return fmt.Errorf("%s %s %s: %w", doing, kind, name, gone(err))
}

// goneError is the error of a write to an object that no longer exists.
type goneError struct{ error }

func (e goneError) Unwrap() error { return e.error }

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return goneError{err}
	}
	return err
}

// IsGone reports whether a write of this package, or one whose error Conflict has returned, found no
// object. Unlike apierrors.IsNotFound, it is false for reads.
func IsGone(err error) bool { return errors.As(err, &goneError{}) }
