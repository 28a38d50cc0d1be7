// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/doctor"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// mounting lets the operator read the kubeconfig for a cluster from the Secret kubeconfig.
func mounting(variable string) edit {
	return named("operator-1", func(pod *corev1.Pod) {
		container := &pod.Spec.Containers[0]
		container.Env = append(container.Env, corev1.EnvVar{Name: variable, Value: "/etc/other-cluster/kubeconfig"})
		container.VolumeMounts = []corev1.VolumeMount{{Name: "other-cluster", MountPath: "/etc/other-cluster"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "other-cluster", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "kubeconfig", Items: []corev1.KeyToPath{{Key: "value", Path: "kubeconfig"}},
		}}}}
	})
}

// jwt returns a token of a ServiceAccount.
func jwt(from, until time.Time) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Appendf(nil, `{"sub":"system:serviceaccount:clusters:identity","iat":%d,"exp":%d}`, from.Unix(), until.Unix())
	return encode([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encode(claims) + "." + encode([]byte("a signature"))
}

// kubeconfigWith returns the Secret with the kubeconfig of the operator.
func kubeconfigWith(user string) *corev1.Secret {
	text := "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: " + user + "}]}"
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "kubeconfig"}, Data: map[string][]byte{"value": []byte(text)}}
}

// tokenFor returns that Secret with a token that was valid for a time, and is for another one.
func tokenFor(was, left time.Duration) *corev1.Secret {
	return kubeconfigWith("{token: " + jwt(fixture.Noon.Add(-was), fixture.Noon.Add(left)) + "}")
}

// reviewing answers questions for rights.
func reviewing(answer func(*authorizationv1.SubjectAccessReviewSpec) (bool, error)) interceptor.Funcs {
	return interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
		review := object.(*authorizationv1.SubjectAccessReview)
		allowed, err := answer(&review.Spec)
		review.Status.Allowed = allowed
		return err
	}}
}

// denying answers that the operator lacks rights, which are verb and resource, with the user.
func denying(denied ...string) interceptor.Funcs {
	return reviewing(func(asked *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
		return !slices.Contains(denied, asked.User+" "+asked.ResourceAttributes.Verb+" "+asked.ResourceAttributes.Resource), nil
	})
}

// hiding forbids to list or get objects.
func hiding[T client.Object, L client.ObjectList]() interceptor.Funcs {
	forbidden := func(name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "hidden"}, name, errors.New("not yours"))
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(T); is {
				return forbidden(key.Name)
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(L); is {
				return forbidden("")
			}
			return c.List(ctx, list, options...)
		},
	}
}

// The checks of the operator itself find what is wrong with its versions, rights and credentials. What the user may not see is a
// warning.
func TestDoctorOperator(t *testing.T) {
	const day, own, other = 24 * time.Hour, "system:serviceaccount:karpenter:operator", "system:serviceaccount:clusters:identity"
	toManagement, toWorkload := mounting("CLUSTER_API_KUBECONFIG"), mounting("WORKLOAD_KUBECONFIG")
	for name, tc := range map[string]struct {
		edits  []edit
		secret *corev1.Secret
		funcs  interceptor.Funcs
		// want are the check, level and object of each finding, and a part of its message.
		want []string
	}{
		"a token lasts":                           {edits: []edit{toManagement}, secret: tokenFor(30*day, 60*day)},
		"a token has no end":                      {edits: []edit{toManagement}, secret: kubeconfigWith("{username: admin, password: secret}"), want: []string{"Rights warning Secret/kubeconfig: its kubeconfig does not show who the operator is in the management cluster"}},
		"a token has expired":                     {edits: []edit{toManagement}, secret: tokenFor(30*day, -time.Minute), want: []string{"Credentials problem Secret/kubeconfig: the operator's credentials for the management cluster, in namespace karpenter, have expired at 2026-01-01 11:59:00 UTC"}},
		"a token expires soon":                    {edits: []edit{toWorkload}, secret: tokenFor(30*day, 2*day), want: []string{"Credentials warning Secret/kubeconfig: the operator's credentials for the workload cluster, in namespace karpenter, expire at 2026-01-03 12:00:00 UTC, which is in less than 3 days"}},
		"a short token is renewed in time":        {edits: []edit{toManagement}, secret: tokenFor(6*time.Hour, 18*time.Hour)},
		"a short token is not renewed":            {edits: []edit{toManagement}, secret: tokenFor(18*time.Hour, 6*time.Hour), want: []string{"Credentials warning Secret/kubeconfig: expire at 2026-01-01 18:00:00 UTC, which is in less than 8h0m0s, a third of the time"}},
		"the Secret does not exist":               {edits: []edit{toManagement}, want: []string{"Rights warning Secret/kubeconfig: it is not known who the operator is", "Credentials problem Secret/kubeconfig: not found"}},
		"the Secret has another key":              {edits: []edit{toManagement}, secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "kubeconfig"}}, want: []string{"Rights warning Secret/kubeconfig: it is not known who", "Credentials problem Secret/kubeconfig: it has no key value"}},
		"the Secret has no kubeconfig":            {edits: []edit{toManagement}, secret: kubeconfigWith("]"), want: []string{"Rights warning Secret/kubeconfig: it is not known who", "Credentials problem Secret/kubeconfig: from its key value, in namespace karpenter: it is no kubeconfig"}},
		"the user may not read the Secret":        {edits: []edit{toManagement}, secret: tokenFor(day, day), funcs: hiding[*corev1.Secret, *corev1.SecretList](), want: []string{"Rights warning Secret/kubeconfig: it is not known who the operator is", "Credentials warning Secret/kubeconfig: you may not read it in namespace karpenter"}},
		"the kubeconfig is in no Secret":          {edits: []edit{toManagement, named("operator-1", func(p *corev1.Pod) { p.Spec.Volumes = nil })}, want: []string{"Rights warning Pod/operator-1: it is not known who", "Credentials warning Pod/operator-1: from /etc/other-cluster/kubeconfig, which is not in a Secret"}},
		"the user may not list Pods":              {funcs: hiding[*corev1.Pod, *corev1.PodList](), want: []string{"Versions warning Versions: listing the operator's Pods", "Rights warning Pod: because you cannot read the operator's Pods", "Credentials warning Pod: because you cannot read the operator's Pods"}},
		"the operator has no Pods":                {edits: []edit{without[*corev1.Pod]("operator-1")}, want: []string{"Rights warning Pod: because the operator has no Pods", "Credentials warning Pod: because the operator has no Pods"}},
		"the Pods are those of another Cluster":   {edits: []edit{named("operator-1", func(p *corev1.Pod) { p.Spec.Containers[0].Env[0].Value = "staging" })}, want: []string{"Rights warning Pod: because the operator has no Pods", "Credentials warning Pod: because the operator has no Pods"}},
		"a right in the workload cluster lacks":   {funcs: denying(own + " patch nodes"), want: []string{`Rights problem ServiceAccount/operator: in the workload cluster, user ` + own + ` has no right in the whole cluster to patch nodes (API group "")`}},
		"a right in the management cluster lacks": {funcs: denying(own + " delete machines"), want: []string{`Rights problem ServiceAccount/operator: in the management cluster, user ` + own + ` has no right in namespace clusters to delete machines`}},
		"another identity lacks a right": {
			edits: []edit{toManagement}, secret: tokenFor(day, 30*day), funcs: denying(other+" delete machines", own+" delete machines"),
			want: []string{`Rights problem ServiceAccount/identity: in the management cluster, user ` + other + ` has no right in namespace clusters to delete machines`},
		},
		"a kind in use was left out of a narrowed role": {funcs: denying(own+" create awsmachinetemplates", own+" list kubeadmconfigs"), want: []string{"Rights problem ServiceAccount/operator: to create awsmachinetemplates (API group \"infrastructure.cluster.x-k8s.io\"), list kubeadmconfigs (API group \"bootstrap.cluster.x-k8s.io\")"}},
		"the kinds of remediation were left out": {
			edits: []edit{named("general", func(t *v1alpha1.KarpenterMachineTemplate) {
				t.Spec.Remediation = &v1alpha1.Remediation{TemplateRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "Metal3RemediationTemplate", Name: "reboot"}}
			})},
			funcs: denying(own+" create metal3remediations", own+" list metal3remediationtemplates", own+" create metal3remediationtemplates"),
			want:  []string{"Rights problem ServiceAccount/operator: to create metal3remediations (API group \"infrastructure.cluster.x-k8s.io\"), list metal3remediationtemplates (API group"},
		},
		"devices are ignored by default": {funcs: denying(own + " list resourceslices")},
		"a right to devices lacks": {
			edits: []edit{named("operator-1", func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "IGNORE_DRA_REQUESTS", Value: "false"})
			})},
			funcs: denying(own + " list resourceslices"),
			want:  []string{`Rights problem ServiceAccount/operator: in the workload cluster, user ` + own + ` has no right in the whole cluster to list resourceslices (API group "resource.k8s.io")`},
		},
		"the user may not ask": {
			funcs: reviewing(func(*authorizationv1.SubjectAccessReviewSpec) (bool, error) {
				return false, apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", nil)
			}),
			want: []string{"Rights warning ServiceAccount/operator: you may not create SubjectAccessReviews in the workload cluster", "Rights warning ServiceAccount/operator: you may not create SubjectAccessReviews in the management cluster"},
		},
		"Cluster API is too old": {
			edits: []edit{named("capi-controller-manager", func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image = "registry.example.com/capi:v1.10.4"
			})},
			want: []string{"Versions warning Cluster API: it has the version v1.10.4, and this version is tested with v1.11 to "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := world(t, append(slices.Clone(sound), tc.edits...)...)
			if tc.secret != nil {
				store(t, from, tc.secret)
			}
			out, messages, _ := runIn(t, intercepted(from, tc.funcs), "doctor", "-o", "json")
			var results []doctor.Result
			if err := json.Unmarshal([]byte(out), &results); err != nil {
				t.Fatalf("%v: %s", err, messages)
			}
			got := lo.FlatMap(results, func(r doctor.Result, _ int) []doctor.Finding { return r.Findings })
			if len(got) != len(tc.want) {
				t.Fatalf("found %+v, want %q", got, tc.want)
			}
			for i, want := range tc.want {
				what, message, _ := strings.Cut(want, ": ")
				if text := fmt.Sprintf("%s %s %s", got[i].Check, got[i].Level, got[i].Object); text != what || !strings.Contains(got[i].Message, message) || got[i].Do == "" {
					t.Errorf("found %+v, want %q, and what to do", got[i], want)
				}
			}
		})
	}
}

// store adds an object to the world.
func store(t *testing.T, in source, object client.Object) {
	t.Helper()
	found, err := in.connect(t.Context(), nil)
	if err == nil {
		err = found.Management.GetClient().Create(t.Context(), object)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The lease of an operator in the management cluster is found, whichever name the installation gives it.
func TestDoctorFindsLeases(t *testing.T) {
	for _, name := range []string{"karpenter-leader-election", operator.LeaseOf(fixture.Served.Namespace, fixture.Served.Name), "karpenter-capi"} {
		rename := named("karpenter-leader-election", func(l *coordinationv1.Lease) { l.Name = name })
		out, messages, code := runIn(t, world(t, append(slices.Clone(sound), rename)...), "doctor")
		if code != 0 || !strings.HasPrefix(out, "✓") {
			t.Errorf("lease %s: exit code %d, want 0 and that an operator leads: %s%s", name, code, out, messages)
		}
	}
	for _, name := range []string{"karpenter-leader-election.clusters.staging", "other"} {
		rename := named("karpenter-leader-election", func(l *coordinationv1.Lease) { l.Name = name })
		if out, _, _ := runIn(t, world(t, append(slices.Clone(sound), rename)...), "doctor"); !strings.Contains(out, "no operator has a lease") {
			t.Errorf("lease %s: want that no operator has a lease: %s", name, out)
		}
	}
}
