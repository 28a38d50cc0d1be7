// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
)

var present = generate.Hashes{Version: "v1.36.3", Kubelet: "v1-k1", Infrastructure: "v1beta2/v1-i1", Bootstrap: "v1beta2/v1-b1"}

// inAnotherWay are hashes that another release has computed.
var inAnotherWay = generate.Hashes{Version: "v1.36.3", Kubelet: "v0-k0", Infrastructure: "v1beta2/v0-i0", Bootstrap: "v1beta2/v0-b0"}

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*generate.Hashes)
		want   cloudprovider.DriftReason
	}{
		"equal":           {func(*generate.Hashes) {}, ""},
		"another version": {func(h *generate.Hashes) { h.Version = "v1.36.2" }, v1alpha1.DriftVersion},
		"another build":   {func(h *generate.Hashes) { h.Version = "v1.36.3+k3s1" }, v1alpha1.DriftVersion},
		"another kubelet": {func(h *generate.Hashes) { h.Kubelet = "v1-k0" }, v1alpha1.DriftKubelet},
		"another base":    {func(h *generate.Hashes) { h.Infrastructure = "v1beta2/v1-i0" }, v1alpha1.DriftInfrastructure},
		"other bootstrap": {func(h *generate.Hashes) { h.Bootstrap = "v1beta2/v1-b0" }, v1alpha1.DriftBootstrap},
		"a Secret before": {func(h *generate.Hashes) { h.Bootstrap = "v1-b0" }, v1alpha1.DriftBootstrap},
		"no version yet":  {func(h *generate.Hashes) { h.Version = "" }, ""},
		"no hashes":       {func(h *generate.Hashes) { *h = generate.Hashes{} }, ""},
		"an older API":    {func(h *generate.Hashes) { h.Infrastructure, h.Bootstrap = "v1beta1/v1-i0", "v1beta1/v1-b0" }, ""},
		"a newer API":     {func(h *generate.Hashes) { h.Bootstrap = "v1/v1-b0" }, ""},
		"another way":     {func(h *generate.Hashes) { *h = inAnotherWay }, ""},
		"another way, and another version": {func(h *generate.Hashes) {
			*h = inAnotherWay
			h.Version = "v1.36.2"
		}, v1alpha1.DriftVersion},
		"kubelet in another way":   {func(h *generate.Hashes) { h.Kubelet, h.Bootstrap = "v2-k0", "v1beta2/v1-b0" }, v1alpha1.DriftBootstrap},
		"a Secret, in another way": {func(h *generate.Hashes) { h.Bootstrap = "v0-b0" }, ""},
		"without a version":        {func(h *generate.Hashes) { h.Kubelet = "k0" }, ""},
		"the cause first": {func(h *generate.Hashes) {
			*h = generate.Hashes{Version: "v1.36.2", Kubelet: "v1-k0", Bootstrap: "v1beta2/v1-b0"}
		}, v1alpha1.DriftVersion},
		"kubelet, kubeadm": {func(h *generate.Hashes) { h.Kubelet, h.Bootstrap = "v1-k0", "v1beta2/v1-b0" }, v1alpha1.DriftKubelet},
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
		return generate.Hashes{Version: "v1.36.3+k3s1", Kubelet: "v1-k1", Infrastructure: "v1beta2/v1-i1", Bootstrap: bootstrap}
	}
	for name, tc := range map[string]struct{ claim, present string }{
		"by a template":           {claim: "v1-b0", present: "v1beta2/v1-b1"},
		"a template, by a Secret": {claim: "v1beta2/v1-b1", present: "v1-b0"},
		"by another Secret":       {claim: "v1-b0", present: "v1-b2"},
	} {
		if got := Compare(generate.ParseHashes(of(tc.claim).String()), of(tc.present)); got != v1alpha1.DriftBootstrap {
			t.Errorf("%s: got %q, want %q", name, got, v1alpha1.DriftBootstrap)
		}
	}
}

// After Renew, what could not be compared is equal, and what could be compared is as before.
func TestRenew(t *testing.T) {
	annotated := func(hashes generate.Hashes) map[string]string {
		return map[string]string{"own": "x", v1alpha1.MachineHashesAnnotation: hashes.String()}
	}
	drifted := generate.Hashes{Version: "v1.36.3", Kubelet: "v1-k0", Infrastructure: "v1beta2/v1-i0", Bootstrap: "v1beta2/v1-b1"}
	for name, tc := range map[string]struct {
		before  map[string]string
		version string
		want    generate.Hashes
	}{
		"current ones":       {annotated(present), "", present},
		"outdated ones":      {annotated(drifted), "", drifted},
		"of another release": {annotated(inAnotherWay), "v1.36.3", present},
		"one of another release": {annotated(generate.Hashes{Version: "v1.36.2", Kubelet: "v0-k0", Infrastructure: "v1beta2/v1-i0", Bootstrap: "v1beta2/v1-b1"}), "v1.36.3",
			generate.Hashes{Version: "v1.36.2", Kubelet: "v1-k1", Infrastructure: "v1beta2/v1-i0", Bootstrap: "v1beta2/v1-b1"}},
		"none":                     {map[string]string{"own": "x"}, "v1.36.3", present},
		"none, an older version":   {map[string]string{"own": "x"}, "v1.36.2", generate.Hashes{Version: "v1.36.2", Kubelet: "v1-k1", Infrastructure: "v1beta2/v1-i1", Bootstrap: "v1beta2/v1-b1"}},
		"none, an unknown version": {map[string]string{"own": "x"}, "", present},
		"of another API version": {annotated(generate.Hashes{Version: "v1.36.3", Kubelet: "v1-k0", Infrastructure: "v1beta1/v1-i0", Bootstrap: "v1beta2/v1-b0"}), "",
			generate.Hashes{Version: "v1.36.3", Kubelet: "v1-k0", Infrastructure: "v1beta2/v1-i1", Bootstrap: "v1beta2/v1-b0"}},
	} {
		t.Run(name, func(t *testing.T) {
			renewed := Renew(tc.before, present, tc.version)
			if diff := cmp.Diff(annotated(tc.want), renewed); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(renewed, Renew(renewed, present, tc.version)); diff != "" {
				t.Errorf("a second time (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenewRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		stored   string
		outdated bool
		want     string
	}{
		"the present one":              {stored: "v1-a", want: "v1-a"},
		"another one":                  {stored: "v1-b", want: "v1-b"},
		"none":                         {},
		"of another release":           {stored: "v0-b", want: "v1-a"},
		"of another release, outdated": {stored: "v0-b", outdated: true},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{"own": "x"}
			if tc.stored != "" {
				annotations[v1alpha1.TemplateRevisionAnnotation] = tc.stored
			}
			renewed := RenewRevision(annotations, "v1-a", tc.outdated)
			if got := renewed[v1alpha1.TemplateRevisionAnnotation]; got != tc.want || renewed["own"] != "x" {
				t.Errorf("got %v, want the revision %q", renewed, tc.want)
			}
		})
	}
}
