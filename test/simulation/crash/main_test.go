// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	debug.SetGCPercent(1000)
	os.Exit(m.Run())
}
