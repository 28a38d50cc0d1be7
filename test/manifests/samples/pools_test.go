// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"testing"

	"sigs.k8s.io/cluster-api/util/annotations"

	"github.com/karpenter-capi/karpenter-capi/internal/generate"
)

// A pool that others are generated from is paused, so that its provider creates nothing for it. The
// generated pools are not paused.
func TestPoolsArePaused(t *testing.T) {
	for _, folder := range []string{"aws-machinepool", "azure-machinepool"} {
		t.Run(folder, func(t *testing.T) {
			s := apply(t, folder)
			if !annotations.HasPaused(s.bases.Infrastructure) {
				t.Error("the base is not paused")
			}
			generator, err := generate.NewGenerator(cluster, s.template, s.bases)
			if err != nil {
				t.Fatal(err)
			}
			offered, _ := s.types(t)
			generated, err := generator.Generate(&offered[0], &offered[0].Offerings[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range generated.Objects {
				if annotations.HasPaused(object) {
					t.Errorf("%s is paused", object.GetKind())
				}
			}
			if got := len(generated.Objects); got != 2 {
				t.Errorf("%d objects are generated, want a pool and a bootstrap configuration", got)
			}
		})
	}
}
