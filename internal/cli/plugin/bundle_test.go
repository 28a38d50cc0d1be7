// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// confidential are texts of the world that no archive may have.
var confidential = map[string]string{
	"token of a kubeconfig":       jwt(fixture.Noon, fixture.Noon.Add(time.Hour)),
	"certificate":                 "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2VydGlmaWNhdGU\n-----END CERTIFICATE-----",
	"key whose end is cut off":    "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIOprivatekeythatwascut",
	"token of kubeadm":            "abcdef.0123456789abcdef",
	"password":                    "correct-horse-battery",
	"environment variable":        "value-of-a-variable",
	"ConfigMap":                   "value-of-a-configmap",
	"bootstrap data":              "#cloud-config of m-1",
	"file of a bootstrap object":  "content-of-a-file",
	"user data of infrastructure": "user-data-of-a-machine",
	"value of a patch":            "value-of-a-bootstrap-patch",
	"template of a patch":         "template-of-a-bootstrap-patch",
	"last applied configuration":  "last-applied-value",
	"variable of a topology":      "value-of-a-topology",
	"header of a probe":           "header-of-a-probe",
	"token of a request":          "0123456789-opaque-token",
}

// logged returns the log of the operator, which repeats what it should not.
func logged(line string) string {
	return `{"level":"INFO","message":"` + line + `the operator started"}` + "\n" +
		`{"level":"ERROR","error":"Authorization: Bearer ` + confidential["token of a request"] + `, token ` + confidential["token of a kubeconfig"] + `"}` + "\n" +
		confidential["certificate"] + "\n" +
		`{"level":"ERROR","error":"dial https://admin:` + confidential["password"] + `@example.com with password=` + confidential["password"] + `"}` + "\n" +
		`{"level":"INFO","message":"the last line"}` + "\n"
}

// secretive is a world in which all kinds of objects have something confidential.
func secretive(t *testing.T, changes ...edit) source {
	t.Helper()
	from := world(t, append([]edit{
		named("operator-1", func(pod *corev1.Pod) {
			container := &pod.Spec.Containers[0]
			container.Env = append(container.Env, corev1.EnvVar{Name: "PASSWORD", Value: confidential["environment variable"]})
			container.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{HTTPHeaders: []corev1.HTTPHeader{{Name: "x", Value: confidential["header of a probe"]}}}}}
		}),
		named("general", func(template *v1alpha1.KarpenterMachineTemplate) {
			template.Spec.Patches = []v1alpha1.Patch{
				{Target: v1alpha1.PatchTargetBootstrap, JSONPatches: []v1alpha1.JSONPatch{
					{Op: "add", Path: "/spec/template/spec/users", Value: &apiextensionsv1.JSON{Raw: []byte(`[{"passwd":"` + confidential["value of a patch"] + `"}]`)}},
					{Op: "add", Path: "/spec/template/spec/files", ValueFrom: &v1alpha1.JSONPatchValue{Template: confidential["template of a patch"]}},
				}},
				{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{{Op: "add", Path: "/spec/template/spec/instanceType", ValueFrom: &v1alpha1.JSONPatchValue{Template: "{{ .instanceType }}"}}}},
			}
		}),
		named("general", func(pool *karpv1.NodePool) {
			pool.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: confidential["last applied configuration"], "example.com/team": "web"}
		}),
		named("prod", func(cluster *clusterv1.Cluster) {
			cluster.Spec.Topology = clusterv1.Topology{Version: "v1.36.3", Variables: []clusterv1.ClusterVariable{{Name: "password", Value: apiextensionsv1.JSON{Raw: []byte(`"` + confidential["variable of a topology"] + `"`)}}}}
		}),
		named("node-1", func(node *corev1.Node) {
			node.Status.Images = []corev1.ContainerImage{{Names: []string{"example.com/image-of-a-node"}}}
			node.Status.Conditions[0].Message = "the certificate is " + confidential["certificate"]
		}),
		named("m-1", func(object *unstructured.Unstructured) {
			spec := map[string]any{"userData": confidential["user data of infrastructure"]}
			if object.GetKind() == "KubeadmConfig" {
				spec = map[string]any{
					"joinConfiguration": map[string]any{"discovery": map[string]any{"bootstrapToken": map[string]any{"token": confidential["token of kubeadm"]}}},
					"files":             []any{map[string]any{"content": confidential["file of a bootstrap object"]}},
				}
			}
			object.Object["spec"] = spec
		}),
	}, changes...)...)
	event := func(namespace, kind, name, message string) *corev1.Event {
		involved := corev1.ObjectReference{Kind: kind, Name: name}
		if kind == "Machine" {
			involved.Namespace = namespace
		}
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ".1"}, InvolvedObject: involved, Message: message}
	}
	for _, object := range []client.Object{
		tokenFor(time.Hour, time.Hour),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "m-1"}, Data: map[string][]byte{"value": []byte(confidential["bootstrap data"])}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "settings"}, Data: map[string]string{"a": confidential["ConfigMap"]}},
		event("default", "NodeClaim", "general-gone", "the join token was "+confidential["token of kubeadm"]),
		event("default", "Node", "node-1", "the key is "+confidential["key whose end is cut off"]),
		event("clusters", "Machine", "m-2", "quota exceeded"),
		event("clusters", "Machine", "machine-of-another-cluster", "an event of others"),
	} {
		store(t, from, object)
	}
	return from
}

// bundleOf runs doctor with --bundle, and returns the files in the archive, their names in their order, and the archive itself.
func bundleOf(t *testing.T, from source) (files map[string]string, names []string, archive []byte, messages string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bug.tar.gz")
	_, messages, _ = runIn(t, from, "doctor", "--bundle", path)
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for reader := tar.NewReader(unpacked); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, names, archive, messages
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name], names = string(content), append(names, header.Name)
	}
}

// The archive has what a bug report needs: its files, and what is in some of them, are in testdata/golden.
func TestBundle(t *testing.T) {
	from := secretive(t)
	files, names, archive, messages := bundleOf(t, from)
	compareGolden(t, "doctor --bundle", strings.Join(names, "\n")+"\n")
	for _, name := range []string{"operator/Pod.yaml", "operator/operator-1.log", "workload/KarpenterMachineTemplate.yaml", "management/KubeadmConfig.yaml", "management/Cluster.yaml"} {
		compareGolden(t, "doctor --bundle "+strings.ReplaceAll(name, "/", " "), files["karpenter-capi-bundle/"+name])
	}
	if errs := files["karpenter-capi-bundle/errors.txt"]; !strings.Contains(errs, "AWSMachine clusters/control-plane of Machine control-plane") || strings.Count(errs, "\n") != 1 {
		t.Errorf("want only the object that does not exist in errors.txt:\n%s", errs)
	}
	if !strings.Contains(messages, "has what a bug report needs. It lacks 1 things") {
		t.Errorf("messages %q", messages)
	}
	for path, want := range map[string]string{
		"doctor.txt": "each NodePool has a template, and is Ready", "versions.yaml": "workload: v1.36.3",
		"operator/operator-1.previous.log": "panic: the operator started", "management/Event.yaml": "quota exceeded",
		"workload/Event.yaml": "general-gone", "workload/NodePool.yaml": "example.com/team: web", "management/AWSMachine.yaml": "UnauthorizedOperation",
	} {
		if !strings.Contains(files["karpenter-capi-bundle/"+path], want) {
			t.Errorf("%s lacks %q:\n%s", path, want, files["karpenter-capi-bundle/"+path])
		}
	}
	if _, _, again, _ := bundleOf(t, from); !bytes.Equal(archive, again) {
		t.Error("the second archive of the same objects differs")
	}
}

// Nothing that is confidential in the world is in the archive, in no encoding. Each text is in the world, so that the test can fail.
func TestBundleHasNoSecrets(t *testing.T) {
	from := secretive(t)
	files, _, _, _ := bundleOf(t, from)
	all := strings.Join(slices.Collect(maps.Values(files)), "\n")
	for what, text := range confidential {
		lines := strings.Split(text, "\n")
		for _, form := range []string{lines[len(lines)/2], base64.StdEncoding.EncodeToString([]byte(text)), strings.ReplaceAll(text, "\n", `\n`)} {
			if strings.Contains(all, form) {
				t.Errorf("the archive has the %s: %q", what, form)
			}
		}
	}
	for _, other := range []string{"image-of-a-node", "an event of others", "BEGIN", "kind: Secret", "kind: ConfigMap"} {
		if strings.Contains(all, other) {
			t.Errorf("the archive has %q", other)
		}
	}
	for what, text := range confidential {
		if !inWorld(t, from, text) {
			t.Errorf("the %s is nowhere in the world", what)
		}
	}
}

// inWorld reports whether an object of the world, or the log, has a text.
func inWorld(t *testing.T, from source, text string) bool {
	t.Helper()
	found, err := from.connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	has := func(object any) bool {
		content, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		quoted, _ := json.Marshal(text)
		form := strings.Trim(string(quoted), `"`)
		return strings.Contains(string(content), form) || strings.Contains(string(content), base64.StdEncoding.EncodeToString([]byte(text)))
	}
	if has(logged("")) {
		return true
	}
	providers := &unstructured.UnstructuredList{}
	providers.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	providers.SetKind("AWSMachineList")
	configs := &unstructured.UnstructuredList{}
	configs.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta2")
	configs.SetKind("KubeadmConfigList")
	secrets := &corev1.SecretList{}
	for _, list := range []client.ObjectList{
		secrets, &corev1.ConfigMapList{}, &corev1.PodList{}, &corev1.EventList{}, &corev1.NodeList{}, &karpv1.NodePoolList{},
		&v1alpha1.KarpenterMachineTemplateList{}, &clusterv1.ClusterList{}, providers, configs,
	} {
		if err := found.Workload.GetClient().List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if has(list) {
			return true
		}
	}
	for _, secret := range secrets.Items {
		for _, value := range secret.Data {
			if strings.Contains(string(value), text) {
				return true
			}
		}
	}
	return false
}

// What the user may not read is listed in errors.txt, and the rest is collected.
func TestBundleWithoutRights(t *testing.T) {
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("not yours"))
	}
	from := intercepted(secretive(t), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if object.GetObjectKind().GroupVersionKind().Kind == "KubeadmConfig" {
				return forbidden("kubeadmconfigs")
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			switch list.(type) {
			case *corev1.NodeList:
				return forbidden("nodes")
			case *corev1.PodList:
				return forbidden("pods")
			case *corev1.EventList:
				return forbidden("events")
			}
			return c.List(ctx, list, options...)
		},
	})
	files, _, _, messages := bundleOf(t, from)
	for _, want := range []string{"workload cluster: nodes", "listing the operator's Pods: pods", "events in namespace default: events", "KubeadmConfig clusters/m-1 of Machine m-1: "} {
		if !strings.Contains(files["karpenter-capi-bundle/errors.txt"], want) {
			t.Errorf("errors.txt lacks %q:\n%s", want, files["karpenter-capi-bundle/errors.txt"])
		}
	}
	if files["karpenter-capi-bundle/management/AWSMachine.yaml"] == "" || files["karpenter-capi-bundle/workload/NodeClaim.yaml"] == "" {
		t.Error("what can be read is not collected")
	}
	if checks := files["karpenter-capi-bundle/doctor.txt"]; !strings.Contains(checks, "nothing is examined") || !strings.Contains(messages, "nodes") {
		t.Errorf("want that nothing is examined, and the reason: %s%s", checks, messages)
	}
}
