// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
)

// The packaged chart of a release renders the same as the folder, with the image of that release.
func TestPackage(t *testing.T) {
	helm := newHelm(t)
	dir := t.TempDir()
	for _, chart := range []string{Operator, CRDs} {
		if _, err := helm.Run(t.Context(), nil, "package", Chart(chart), "--version=1.2.3", "--app-version=v1.2.3", "--destination="+dir); err != nil {
			t.Fatal(err)
		}
		manifests, err := helm.Run(t.Context(), nil, "template", release, filepath.Join(dir, chart+"-1.2.3.tgz"), "--namespace="+namespace)
		if err != nil {
			t.Fatal(err)
		}
		packaged, err := Decode(manifests)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(render(t, chart, nil).names(), objects(packaged).names()); diff != "" {
			t.Errorf("%s (-folder +package):\n%s", chart, diff)
		}
		if chart == CRDs {
			continue
		}
		deployment := the[appsv1.Deployment](t, packaged, "Deployment")
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != "ghcr.io/karpenter-capi/karpenter-capi:v1.2.3" {
			t.Errorf("got the image %s", got)
		}
		if got := deployment.Labels["app.kubernetes.io/version"] + " " + deployment.Labels["helm.sh/chart"]; got != "v1.2.3 karpenter-capi-1.2.3" {
			t.Errorf("got the labels %s", got)
		}
	}
}
