// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/hack/generated"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/why"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// What commands print is in testdata/golden, to the byte. go test -run TestReading -update writes it.
func TestReading(t *testing.T) {
	for _, command := range []string{
		"tree", "tree -o wide", "tree nodeclaim general-runs -o yaml", "tree machine m-spare",
		"offerings general", "offerings general --nodepool small", "offerings general --pod large --namespace shop", "offerings general -o json",
		"cost", "cost general -o yaml", "doctor", "doctor -o json",
		"why pod blocked --namespace shop", "why pod large --namespace shop -o yaml", "why nodeclaim general-boots",
		"why template gpu", "why template general -o yaml",
		"--help",
	} {
		t.Run(command, func(t *testing.T) {
			got, messages, code := runIn(t, world(t), strings.Fields(command)...)
			if want := map[bool]int{true: 1}[strings.HasPrefix(command, "doctor") && !strings.Contains(command, "help")]; code != want {
				t.Fatalf("exit code %d, want %d: %s", code, want, messages)
			}
			compareGolden(t, command, got)
		})
	}
}

// compareGolden compares what a command prints with its file in testdata/golden, or writes that with -update.
func compareGolden(t *testing.T, command, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", strings.NewReplacer(" ", "_", "--", "").Replace(command)+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("it prints something else (-want +got):\n%s", diff)
	}
}

// Each rule finds its cause, and names the object to act on.
func TestWhy(t *testing.T) {
	pause := func(o client.Object) {
		o.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: ""})
	}
	found := map[string]bool{}
	for name, tc := range map[string]struct {
		ask     string
		changes []edit
		rule    string
		cause   string
	}{
		"no operator runs":             {ask: "pod large", changes: []edit{named("karpenter-leader-election", func(l *coordinationv1.Lease) { l.Spec.RenewTime.Time = fixture.Noon.Add(-time.Minute) })}, rule: "OperatorStopped", cause: "since 2026-01-01 11:59:00 UTC"},
		"a Pod runs":                   {ask: "pod runs", cause: "nothing blocks Pod runs"},
		"a container waits":            {ask: "pod pulls", rule: "ContainersWait", cause: "ImagePullBackOff"},
		"a Pod is gated":               {ask: "pod gated", rule: "Gated", cause: "example.com/quota"},
		"a Pod is too large":           {ask: "pod large", rule: "TooLarge", cause: "m5.xlarge is the largest: cpu: 8 is requested"},
		"no zone fits":                 {ask: "pod elsewhere", rule: "NoOffering", cause: "us-west-2a"},
		"the template is not Ready":    {ask: "pod vision", rule: "TemplateNotReady", cause: "AWSMachineTemplate clusters/gpu does not exist"},
		"the NodePool is at its limit": {ask: "pod batch", rule: "NodePoolLimit", cause: "NodePool small: its limit of cpu is 4"},
		"a taint is not tolerated":     {ask: "pod untolerated", rule: "NotTolerated", cause: "batch"},
		"claims are not served": {ask: "pod elsewhere", rule: "ClaimsNotServed", changes: []edit{
			named("elsewhere", func(p *corev1.Pod) {
				p.Spec.NodeSelector, p.Spec.ResourceClaims = map[string]string{"team": "web"}, []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
			}),
			named("types", func(c *v1alpha1.InstanceTypeCatalog) {
				c.Spec.InstanceTypes[1].Devices = []v1alpha1.Device{{Driver: "gpu.example.com", Count: new(int32(4))}}
			}),
			named("blocked.1", func(e *corev1.Event) {
				e.InvolvedObject.UID, e.Type, e.Reason = "pod-elsewhere", corev1.EventTypeWarning, "FailedScheduling"
				e.Message = `Failed to schedule pod, incompatible with nodepool "general", allocating dynamic resources, no instance type can satisfy the allocation`
			}),
		}, cause: "no instance type can satisfy the allocation. The instance types of NodePool general have devices (m5.xlarge: 4 of gpu.example.com)"},
		"all offerings have failed":        {ask: "pod unlucky", rule: "OfferingsUnavailable", cause: "no m5.large in us-east-1b"},
		"no NodePool uses a template":      {ask: "pod large", changes: []edit{without[*karpv1.NodePool]("general"), without[*karpv1.NodePool]("gpu"), without[*karpv1.NodePool]("small")}, rule: "NoNodePool"},
		"a preflight check fails":          {ask: "pod blocked", rule: "Blocked", cause: "ControlPlane clusters/prod is upgrading"},
		"the Cluster is paused":            {ask: "nodeclaim general-starts", changes: []edit{named("prod", func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })}, rule: "ClusterPaused", cause: "Cluster clusters/prod is paused"},
		"the MachineDeployment is paused":  {ask: "pod blocked", changes: []edit{named("general-m5-xlarge-1a", func(d *clusterv1.MachineDeployment) { pause(d) })}, rule: "ResourcePaused", cause: "general-m5-xlarge-1a is paused"},
		"the infrastructure is not ready":  {ask: "nodeclaim general-starts", rule: "InstanceNotReady", cause: "UnauthorizedOperation: not allowed to use ami-1"},
		"an instance becomes no Node":      {ask: "machine m-3", rule: "NodeMissing", cause: "aws:///us-east-1a/i-3"},
		"a Node joins with another ID":     {ask: "nodeclaim general-boots", changes: []edit{without[*clusterv1.Machine]("m-4"), without[*karpv1.NodeClaim]("general-tainted"), named("node-4", func(n *corev1.Node) { n.CreationTimestamp.Time = fixture.Noon })}, rule: "OtherProviderID", cause: "Node node-4 joined with provider ID aws:///us-east-1a/i-4"},
		"a Node joins without an ID":       {ask: "nodeclaim general-boots", changes: []edit{without[*clusterv1.Machine]("m-4"), without[*karpv1.NodeClaim]("general-tainted"), named("node-4", func(n *corev1.Node) { n.CreationTimestamp.Time, n.Spec.ProviderID = fixture.Noon, "" })}, rule: "NodeWithoutID", cause: "Node node-4"},
		"a startup taint stays":            {ask: "node node-4", rule: "NotInitialized", cause: "cni.example.com/not-ready"},
		"a Node is not Ready":              {ask: "node node-1", changes: []edit{named("node-1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })}, rule: "NodeNotReady"},
		"a Machine is spare":               {ask: "machine m-spare", rule: "Spare", cause: "since 1m0s"},
		"a Machine is not of the operator": {ask: "machine control-plane", rule: "NotGenerated"},
		"a Node is not of Karpenter":       {ask: "node node-0", rule: "NotOfKarpenter"},
		"a NodeClaim is drifted": {ask: "nodeclaim general-runs", changes: []edit{named("general-runs", func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetTrueWithReason(karpv1.ConditionTypeDrifted, "VersionDrift", "VersionDrift")
		})}, rule: "Drifted", cause: "VersionDrift"},
		"a launch has failed": {ask: "nodeclaim general-starts", changes: []edit{named("general-starts", func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonQuotaExceeded, "VcpuLimitExceeded")
		})}, rule: "LaunchFailed", cause: "QuotaExceeded: VcpuLimitExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			found[expectCause(t, tc.ask, tc.rule, tc.cause, tc.changes...)] = true
		})
	}
	if len(found) < 10 {
		t.Errorf("%d rules are found, want 10 or more", len(found))
	}
}

// expectCause expects that a question has the answer of a rule, with a cause, and returns the rule that it has.
func expectCause(t *testing.T, ask, rule, cause string, changes ...edit) string {
	t.Helper()
	out, messages, code := runIn(t, world(t, changes...), append(strings.Fields("why "+ask), "--namespace", "shop", "-o", "json")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	answer := &why.Answer{}
	if err := yaml.UnmarshalStrict([]byte(out), answer); err != nil {
		t.Fatal(err)
	}
	if answer.Rule != rule || !strings.Contains(answer.Cause, cause) {
		t.Errorf("rule %q and cause %q, want rule %q and a cause with %q", answer.Rule, answer.Cause, rule, cause)
	}
	if answer.Rule != "" && answer.Do == "" {
		t.Error("it does not say what to do")
	}
	return answer.Rule
}

// What the user may not list is named, and nothing is printed.
func TestForbidden(t *testing.T) {
	from := intercepted(world(t), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*corev1.NodeList); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
			}
			return c.List(ctx, list, options...)
		},
	})
	out, messages, code := runIn(t, from, "tree")
	if code != 1 || out != "" || !strings.Contains(messages, "workload cluster: nodes") {
		t.Errorf("exit code %d, output %q, messages %q, want 1, none, and the resource that is forbidden", code, out, messages)
	}
}

// A user who may not list CustomResourceDefinitions sees that, instead of waiting for a cache that never has them.
func TestKindsForbidden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "", nil)
	from := intercepted(world(t), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*metav1.PartialObjectMetadata); is {
				<-ctx.Done()
				return ctx.Err()
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*metav1.PartialObjectMetadataList); is {
				return forbidden
			}
			return c.List(ctx, list, options...)
		},
	})
	synctest.Test(t, func(t *testing.T) {
		out, messages, code := runIn(t, from, "tree", "nodeclaim", "general-runs", "-o", "wide")
		if code != 0 || strings.Count(out, "Unknown") != 2 || !strings.Contains(out, "management cluster: customresourcedefinitions is forbidden") {
			t.Errorf("exit code %d, want 0 and two objects that are unknown: %s%s", code, out, messages)
		}
	})
}

// Wrong arguments are refused with what is expected, before anything is read.
func TestWrongArguments(t *testing.T) {
	unread := source{
		connect: func(context.Context, *view.Options) (*clients.Clusters, error) { panic("it reads") },
		now:     time.Now,
	}
	for command, want := range map[string]string{
		"tree cat":                       "expected nothing, or one of machine, node, nodeclaim, nodepool, template and a name",
		"tree cat tom":                   "expected nothing, or one of",
		"why pod":                        "expected one of pod, nodeclaim, machine, node, template and a name",
		"offerings":                      "accepts 1 arg(s)",
		"tree -o table":                  `--output "table": expected one of wide, json, yaml`,
		"offerings general --pod a -f b": "none of the others can be",
		"cost a b":                       "accepts at most 1 arg(s)",
	} {
		t.Run(command, func(t *testing.T) {
			out, messages, code := runIn(t, unread, strings.Fields(command)...)
			if code != 1 || out != "" || !strings.Contains(messages, want) {
				t.Errorf("exit code %d, output %q, messages %q, want 1, none, and %q", code, out, messages, want)
			}
		})
	}
	for command, want := range map[string]string{
		"tree node nowhere":              "node nowhere: it does not exist",
		"why node nowhere":               "node nowhere: it does not exist",
		"why template nowhere":           "template nowhere: it does not exist",
		"why pod nowhere -n shop":        `reading Pod shop/nowhere: pods "nowhere" not found`,
		"offerings nowhere":              "KarpenterMachineTemplate nowhere does not exist",
		"offerings general --nodepool x": "NodePool x does not exist",
		"cost nowhere":                   "NodePool nowhere does not exist",
	} {
		t.Run(command, func(t *testing.T) {
			_, messages, code := runIn(t, world(t), strings.Fields(command)...)
			if code != 1 || !strings.Contains(messages, want) {
				t.Errorf("exit code %d, messages %q, want 1 and %q", code, messages, want)
			}
		})
	}
}

// A Pod from a file is treated as one of the cluster.
func TestOfferingsForFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod.yaml")
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n  - {name: c, resources: {requests: {cpu: 3}}}\n"
	if err := os.WriteFile(path, []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	out, messages, code := runIn(t, world(t), "offerings", "general", "-f", path)
	if code != 0 {
		t.Fatal(messages)
	}
	lines := bytes.Split([]byte(out), []byte("\n"))
	if !bytes.HasPrefix(lines[1], []byte("m5.xlarge")) || !bytes.Contains(lines[2], []byte("TooSmall: cpu: 3 is requested")) {
		t.Errorf("want m5.xlarge first, and the others too small:\n%s", out)
	}
}

// The reference of the plugin shows what commands print. go test -run TestDocumented -update writes it.
func TestDocumented(t *testing.T) {
	const path = "../../../docs/reference/plugin.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	other, _ := otherAutoscaler(t)
	for part, command := range map[string]string{
		"migrate": "migrate cluster-autoscaler", "tree": "tree nodepool general", "why": "why pod blocked --namespace shop", "why template": "why template gpu", "offerings": "offerings general", "cost": "cost", "doctor": "doctor", "rollout": "rollout status general",
	} {
		from := world(t)
		switch part {
		case "migrate":
			from = other
		case "rollout":
			from = world(t, rollingOut(v1alpha1.RolloutCanary))
		}
		out, _, _ := runIn(t, from, strings.Fields(command)...)
		if want, err = generated.Replace(want, part, "```console\n$ kubectl karpenter-capi "+command+"\n"+out+"```"); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("docs/reference/plugin.md shows something else (-commands +page):\n%s", diff)
	}
}

// The help of each command that reads has an example.
func TestExamples(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	for _, command := range newCommand(streams, world(t)).Commands() {
		if command.Name() != "catalog" && !strings.Contains(command.Example, "kubectl karpenter-capi "+command.Name()) {
			t.Errorf("the help of %s has no example", command.Name())
		}
	}
}
