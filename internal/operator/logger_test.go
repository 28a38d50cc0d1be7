// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"io"
	"testing"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// counted is a value that counts how often it is encoded.
type counted struct{ times *int }

func (c counted) MarshalLogObject(zapcore.ObjectEncoder) error {
	*c.times++
	return nil
}

// Loggers of reconciles that log nothing must cost nothing, and those that log must have all values.
func TestLazyCore(t *testing.T) {
	written, messages := observer.New(zap.InfoLevel)
	var encoded int
	value := zap.Object("value", counted{&encoded})
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{})
	core := zapcore.NewTee(written, zapcore.NewCore(encoder, zapcore.AddSync(io.Discard), zap.InfoLevel))
	logger := zap.New(lazyCore{core}).With(value).With(zap.String("first", "a"))
	log := zapr.NewLogger(logger).WithValues("second", "b")

	log.V(1).Info("not enabled")
	if encoded != 0 {
		t.Errorf("the value was encoded %d times without a message, want 0", encoded)
	}
	log.Info("one")
	log.Info("two", "third", "c")
	if encoded != 1 {
		t.Errorf("the value was encoded %d times for two messages of a logger, want once", encoded)
	}
	all := messages.All()
	if len(all) != 2 {
		t.Fatalf("got %d messages, want 2", len(all))
	}
	for key, want := range map[string]any{"first": "a", "second": "b", "third": "c"} {
		if got := all[1].ContextMap()[key]; got != want {
			t.Errorf("got %s=%v in the second message, want %v", key, got, want)
		}
	}
}
