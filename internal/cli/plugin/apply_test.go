// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

const stored = `apiVersion: karpenter.cluster.x-k8s.io/v1alpha1
kind: InstanceTypeCatalog
metadata: {name: x, labels: {team: a}, annotations: {note: b}, uid: abc, resourceVersion: "7", finalizers: [a/b]}
spec:
  instanceTypes:
  - {name: m1, price: "0.1", capacity: {cpu: "1", memory: 4Gi}, offerings: [{zones: [a]}]}
status: {instanceTypes: 1}
`

func reads(content string) clusterOptions {
	o := newClusterOptions(genericiooptions.IOStreams{In: strings.NewReader(content)})
	o.file = "-"
	return o
}

// A file from kubectl get can be applied: what the cluster has added is left out.
func TestRead(t *testing.T) {
	for name, tc := range map[string]struct{ replace, with, problem string }{
		"as the cluster has it": {},
		"a field that is none":  {"finalizers: [a/b]", "finaliser: [a/b]", "expected one InstanceTypeCatalog"},
		"another kind":          {"kind: InstanceTypeCatalog", "kind: KarpenterMachineTemplate", "expected a karpenter.cluster.x-k8s.io/v1alpha1 InstanceTypeCatalog with a name"},
		"another version":       {"v1alpha1", "v1", "expected a karpenter.cluster.x-k8s.io/v1alpha1 InstanceTypeCatalog with a name"},
		"no name":               {"name: x, ", "", "expected a karpenter.cluster.x-k8s.io/v1alpha1 InstanceTypeCatalog with a name"},
		"a type without price":  {`price: "0.1", `, "", "instance type m1: offering a/on-demand: it has no price"},
	} {
		t.Run(name, func(t *testing.T) {
			o := reads(strings.Replace(stored, tc.replace, tc.with, 1))
			got, err := o.read()
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("got %v, want %q", err, tc.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := yaml.Marshal(got.ObjectMeta)
			if err != nil || got.Status.InstanceTypes != 0 || len(got.Spec.InstanceTypes) != 1 {
				t.Errorf("got %+v and %v", got, err)
			}
			if diff := cmp.Diff("annotations:\n  note: b\nlabels:\n  team: a\nname: x\n", string(content)); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
	o := newClusterOptions(genericiooptions.IOStreams{})
	o.file = filepath.Join(testdata, "aws.yaml")
	if got, err := o.read(); err != nil || got.Name != "aws-us-east-1" {
		t.Errorf("a file: got %v and %v", got, err)
	}
}

// A catalog is applied by one field manager. It takes fields of others, and is stored, only if the user wants that.
func TestApply(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "instancetypecatalogs"}, "x", errors.New("conflict with \"kubectl\""))
	for name, tc := range map[string]struct {
		force, dryRun bool
		answer        error
		problem       string
	}{
		"usual":         {},
		"forced":        {force: true},
		"a dry run":     {dryRun: true},
		"a conflict":    {answer: conflict, problem: "another field manager has set fields of it; to take them over, set --force-conflicts"},
		"another error": {answer: errors.New("no right"), problem: "applying InstanceTypeCatalog x: no right"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent map[string]any
			options := client.ApplyOptions{}
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme()).Build(), interceptor.Funcs{
				Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, given ...client.ApplyOption) error {
					options.ApplyOptions(given)
					content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
					sent = content
					return errors.Join(err, tc.answer)
				},
			})
			o := reads(stored)
			given, err := o.read()
			if err != nil {
				t.Fatal(err)
			}
			o.force = tc.force
			applied, err := o.apply(t.Context(), c, given, tc.dryRun)
			if tc.problem == "" && (err != nil || applied.Name != "x" || len(applied.Spec.InstanceTypes) != 1) || tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
				t.Errorf("got %v and %v, want %q", applied, err, tc.problem)
			}
			if (options.Force != nil && *options.Force) != tc.force || len(options.DryRun) > 0 != tc.dryRun || options.FieldManager != FieldOwner {
				t.Errorf("got options %+v", options)
			}
			if labels, _, _ := unstructured.NestedStringMap(sent, "metadata", "labels"); labels["team"] != "a" {
				t.Errorf("sent %v", sent)
			}
		})
	}
}

// kubectl diff ends in the same way: 0 without differences, 1 with some, 2 if it has failed.
func TestExitCode(t *testing.T) {
	for want, err := range []error{nil, reported{}, comparisonFailed{errors.New("no right")}} {
		if got := ExitCode(err); got != want {
			t.Errorf("got %d for %v, want %d", got, err, want)
		}
	}
	if got := ExitCode(errors.New("no file")); got != 1 {
		t.Errorf("got %d for another error, want 1", got)
	}
}
