// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestAwait(t *testing.T) {
	broken := errors.New("etcd has ended")
	canceled, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupt"))
	for name, tc := range map[string]struct {
		ctx   context.Context
		check Check
		want  string
	}{
		"done": {
			check: func(context.Context) (bool, string, error) { return true, "", nil },
		},
		"when the time is over, the error has what was found last": {
			check: func(context.Context) (bool, string, error) { return false, "2 of 3", nil },
			want:  "waited 300ms for three; last found: 2 of 3",
		},
		"a check that hangs until the time is over has no result": {
			check: func(ctx context.Context) (bool, string, error) {
				<-ctx.Done()
				return false, ctx.Err().Error(), ctx.Err()
			},
			want: "waited 300ms for three; last found: nothing yet",
		},
		"an error is final": {
			check: func(context.Context) (bool, string, error) { return false, "", broken },
			want:  "etcd has ended",
		},
		"an interrupt is no timeout": {
			ctx:   canceled,
			check: func(context.Context) (bool, string, error) { return false, "", nil },
			want:  "interrupted while waiting for three: interrupt",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			err := Await(ctx, 300*time.Millisecond, "three", tc.check)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.want))
			}
		})
	}
}
