// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
)

var present = generate.Hashes{Version: "v1.36.3", Kubelet: "k1", Infrastructure: "v1beta2/i1", Bootstrap: "v1beta2/b1"}

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*generate.Hashes)
		want   cloudprovider.DriftReason
	}{
		"equal":           {func(*generate.Hashes) {}, ""},
		"another version": {func(h *generate.Hashes) { h.Version = "v1.36.2" }, v1alpha1.DriftVersion},
		"another build":   {func(h *generate.Hashes) { h.Version = "v1.36.3+k3s1" }, v1alpha1.DriftVersion},
		"another kubelet": {func(h *generate.Hashes) { h.Kubelet = "k0" }, v1alpha1.DriftKubelet},
		"another base":    {func(h *generate.Hashes) { h.Infrastructure = "v1beta2/i0" }, v1alpha1.DriftInfrastructure},
		"other bootstrap": {func(h *generate.Hashes) { h.Bootstrap = "v1beta2/b0" }, v1alpha1.DriftBootstrap},
		"a Secret before": {func(h *generate.Hashes) { h.Bootstrap = "b0" }, v1alpha1.DriftBootstrap},
		"no version yet":  {func(h *generate.Hashes) { h.Version = "" }, ""},
		"no hashes":       {func(h *generate.Hashes) { *h = generate.Hashes{} }, ""},
		"an older API":    {func(h *generate.Hashes) { h.Infrastructure, h.Bootstrap = "v1beta1/i0", "v1beta1/b0" }, ""},
		"a newer API":     {func(h *generate.Hashes) { h.Bootstrap = "v1/b0" }, ""},
		"the cause first": {func(h *generate.Hashes) {
			*h = generate.Hashes{Version: "v1.36.2", Kubelet: "k0", Bootstrap: "v1beta2/b0"}
		}, v1alpha1.DriftVersion},
		"kubelet, kubeadm": {func(h *generate.Hashes) { h.Kubelet, h.Bootstrap = "k0", "v1beta2/b0" }, v1alpha1.DriftKubelet},
	} {
		t.Run(name, func(t *testing.T) {
			hashes := present
			tc.change(&hashes)
			if got := Compare(generate.ParseHashes(hashes.String()), present); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A bootstrap template that replaces a Secret is another bootstrap, although only one of both has an API version.
func TestASecretIsReplaced(t *testing.T) {
	of := func(bootstrap string) generate.Hashes {
		return generate.Hashes{Version: "v1.36.3+k3s1", Kubelet: "k1", Infrastructure: "v1beta2/i1", Bootstrap: bootstrap}
	}
	for name, tc := range map[string]struct{ claim, present string }{
		"by a template":           {claim: "b0", present: "v1beta2/b1"},
		"a template, by a Secret": {claim: "v1beta2/b1", present: "b0"},
		"by another Secret":       {claim: "b0", present: "b2"},
	} {
		if got := Compare(generate.ParseHashes(of(tc.claim).String()), of(tc.present)); got != v1alpha1.DriftBootstrap {
			t.Errorf("%s: got %q, want %q", name, got, v1alpha1.DriftBootstrap)
		}
	}
}

// After Renew, what could not be compared is equal, and what could be compared is as before.
func TestRenew(t *testing.T) {
	annotated := func(version string, hashes generate.Hashes) map[string]string {
		return map[string]string{"own": "x", v1alpha1.MachineHashVersionAnnotation: version, v1alpha1.MachineHashesAnnotation: hashes.String()}
	}
	drifted := generate.Hashes{Version: "v1.36.3", Kubelet: "k0", Infrastructure: "v1beta2/i0", Bootstrap: "v1beta2/b1"}
	for name, tc := range map[string]struct {
		before  map[string]string
		version string
		want    generate.Hashes
	}{
		"current ones":             {annotated(generate.HashVersion, present), "", present},
		"outdated ones":            {annotated(generate.HashVersion, drifted), "", drifted},
		"of another release":       {annotated("v0", drifted), "v1.36.3", present},
		"none":                     {map[string]string{"own": "x"}, "v1.36.3", present},
		"none, an older version":   {map[string]string{"own": "x"}, "v1.36.2", generate.Hashes{Version: "v1.36.2", Kubelet: "k1", Infrastructure: "v1beta2/i1", Bootstrap: "v1beta2/b1"}},
		"none, an unknown version": {map[string]string{"own": "x"}, "", present},
		"of another API version": {annotated(generate.HashVersion, generate.Hashes{Version: "v1.36.3", Kubelet: "k0", Infrastructure: "v1beta1/i0", Bootstrap: "v1beta2/b0"}), "",
			generate.Hashes{Version: "v1.36.3", Kubelet: "k0", Infrastructure: "v1beta2/i1", Bootstrap: "v1beta2/b0"}},
	} {
		t.Run(name, func(t *testing.T) {
			renewed := Renew(tc.before, present, tc.version)
			if diff := cmp.Diff(annotated(generate.HashVersion, tc.want), renewed); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(renewed, Renew(renewed, present, tc.version)); diff != "" {
				t.Errorf("a second time (-want +got):\n%s", diff)
			}
		})
	}
}
