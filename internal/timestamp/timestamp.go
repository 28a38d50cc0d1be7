// SPDX-License-Identifier: Apache-2.0

// Package timestamp reads and writes times in annotations, in the format of RFC 3339.
package timestamp

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// skew is the greatest difference between the clocks of two operators that Corrections tolerates.
const skew = 10 * time.Second

// Format returns a time in the format of annotations, in UTC and whole seconds.
func Format(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Of returns the time in an annotation of an object. It returns false if the annotation is
// absent or is not a time.
func Of(object metav1.Object, annotation string) (time.Time, bool) {
	value, ok := object.GetAnnotations()[annotation]
	if !ok { // most objects lack it, and the error of Parse would allocate memory
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, value)
	return t, err == nil
}

// Corrections returns the annotations whose time is invalid or in the future, with the present time.
// A user has edited them, or the previous leader had another clock. Waits would be longer by the
// difference, or would never end.
func Corrections(annotations map[string]string, keys []string, now time.Time) map[string]string {
	var corrections map[string]string
	for _, key := range keys {
		value, ok := annotations[key]
		if !ok {
			continue
		}
		if at, err := time.Parse(time.RFC3339, value); err != nil || at.After(now.Add(skew)) {
			if corrections == nil {
				corrections = map[string]string{}
			}
			corrections[key] = Format(now)
		}
	}
	return corrections
}
