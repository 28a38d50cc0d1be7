// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/blang/semver/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// versionsAreTested finds versions that do not belong together.
func versionsAreTested(ctx context.Context, v *view.View) ([]Finding, error) {
	versions, errs := v.Versions(ctx)
	found := ofVersions(versions, build.Read().Version)
	var failed []error
	for _, err := range errs {
		if apierrors.IsForbidden(err) {
			found = append(found, warning("Versions", "Repeat this as a user who may", "a version is not known: %v", err))
		} else {
			failed = append(failed, err)
		}
	}
	return found, errors.Join(failed...)
}

// untested is what to do about a version that the operator is not tested with.
const untested = "Read the page Compatibility of the documentation, and use versions that belong together"

// ofVersions returns what is wrong with versions. plugin is the version of this program, whose rules are those of the operator of the
// same version.
func ofVersions(versions view.Versions, plugin string) []Finding {
	var found []Finding
	kubernetes := func(object, version string) {
		if version != "" && !build.Kubernetes.Has(version) {
			found = append(found, warning(object, untested, "its Kubernetes is %s, and this version is tested with %s", version, build.Kubernetes))
		}
	}
	kubernetes("workload cluster", versions.Workload)
	if versions.Management != versions.Workload {
		kubernetes("management cluster", versions.Management)
	}
	for _, image := range versions.Providers[view.ClusterAPI] {
		if version := tag(image); isVersion(version) && !build.ClusterAPI.Has(version) {
			found = append(found, warning("Cluster API", untested, "it has the version %s, and this version is tested with %s", version, build.ClusterAPI))
		}
	}
	if len(versions.Operator) > 1 {
		found = append(found, warning("Pod", "Wait until the upgrade has ended. If it does not, read the events of the Pods", "the operator's Pods have different images: %s", strings.Join(versions.Operator, ", ")))
	}
	for _, image := range versions.Operator {
		if version := tag(image); isVersion(version) && isVersion(plugin) && !same(version, plugin) {
			found = append(found, warning("Pod", "Use the plugin of the operator's version: what it says follows the rules of its own", "the operator's image is %s, and this plugin has the version %s", image, plugin))
		}
	}
	return found
}

// tag returns the tag of an image; empty if it has none.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !found {
		return ""
	}
	return tag
}

// isVersion reports whether a tag is a version. Images of one's own can have other tags, which show nothing.
func isVersion(tag string) bool {
	_, err := semver.ParseTolerant(tag)
	return err == nil && strings.Contains(tag, ".")
}

func same(a, b string) bool {
	return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v")
}
