// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

const (
	provider  = "addon-karpenter"
	namespace = "karpenter-capi-system"
)

// variable matches a variable of clusterctl as the contract requires it: named after the provider, with a default.
var variable = regexp.MustCompile(`\$\{(KARPENTER_[A-Z_]+):=([^}]+)\}`)

// components returns the objects that clusterctl creates from addon-components.yaml if no variable is set.
func components(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return componentsOf(t, "addon-components.yaml")
}

// componentsOf returns the objects in a file, as clusterctl creates them with variables such as NAME=VALUE.
func componentsOf(t *testing.T, file string, variables ...string) []*unstructured.Unstructured {
	t.Helper()
	out, err := build(t, version, image)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(out, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range variables {
		name, value, _ := strings.Cut(set, "=")
		named := regexp.MustCompile(`\$\{` + name + `:=[^}]+\}`)
		if !named.Match(content) {
			t.Errorf("%s has no variable %s", file, name)
		}
		content = named.ReplaceAll(content, []byte(value))
	}
	content = variable.ReplaceAll(content, []byte("$2"))
	if at := bytes.Index(content, []byte("${")); at >= 0 {
		t.Errorf("no variable of this provider with a default: %.60s", content[at:])
	}
	return decode(t, content)
}

func decode(t *testing.T, manifests []byte) (objects []*unstructured.Unstructured) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

func ofKind(kind string, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

func TestComponents(t *testing.T) {
	objects := components(t)
	if namespaces := ofKind("Namespace", objects); len(namespaces) != 1 || namespaces[0].GetName() != namespace {
		t.Errorf("got %d namespaces, want one, %s", len(namespaces), namespace)
	}
	for _, object := range objects {
		id := object.GetKind() + " " + object.GetName()
		if got := object.GetLabels()[clusterv1.ProviderNameLabel]; got != provider {
			t.Errorf("%s: label %s is %q, want %q", id, clusterv1.ProviderNameLabel, got, provider)
		}
		switch object.GetKind() {
		case "Namespace", "CustomResourceDefinition":
		case "ClusterRole", "ClusterRoleBinding":
			// clusterctl delete does not delete objects with other names.
			if !strings.HasPrefix(object.GetName(), namespace+"-") {
				t.Errorf("%s: the name does not begin with that of the namespace", id)
			}
		case "ServiceAccount", "Role", "RoleBinding", "Deployment":
			if object.GetNamespace() != namespace {
				t.Errorf("%s is in namespace %q, want %s", id, object.GetNamespace(), namespace)
			}
			if mounts, found, _ := unstructured.NestedBool(object.Object, "automountServiceAccountToken"); object.GetKind() == "ServiceAccount" && (mounts || !found) {
				t.Errorf("all Pods with %s get its token", id)
			}
		default:
			t.Errorf("%s: does clusterctl know that this kind is namespaced, or cluster-wide, and delete it?", id)
		}
	}
}

// KARPENTER_MANAGEMENT_BINDING limits the rights to Cluster API's objects to one namespace. All other rights stay as they are.
func TestManagementBinding(t *testing.T) {
	bindings := func(variables ...string) map[string]string {
		all := map[string]string{}
		for _, object := range componentsOf(t, "addon-components.yaml", variables...) {
			role, found, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			if !found {
				continue
			}
			all[role] = object.GetKind()
			subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
			want := []any{map[string]any{"kind": "ServiceAccount", "name": "karpenter-capi-manager", "namespace": namespace}}
			if !reflect.DeepEqual(subjects, want) {
				t.Errorf("%s %s binds %v", object.GetKind(), object.GetName(), subjects)
			}
		}
		return all
	}
	const managed = "karpenter-capi-system-management-role"
	want := bindings()
	if want[managed] != "ClusterRoleBinding" || len(want) != 6 {
		t.Errorf("without variables the bindings are %v", want)
	}
	want[managed] = "RoleBinding"
	if got := bindings("KARPENTER_MANAGEMENT_BINDING=RoleBinding"); !reflect.DeepEqual(got, want) {
		t.Errorf("with a RoleBinding the bindings are %v, want %v", got, want)
	}
}

// With KARPENTER_RUN_AS_ID=null the cluster chooses user and groups of the Pods.
func TestClusterChoosesUser(t *testing.T) {
	for variable, want := range map[string]*int64{"KARPENTER_RUN_AS_ID=null": nil, "KARPENTER_RUN_AS_ID=1000": new(int64(1000))} {
		deployment := &appsv1.Deployment{}
		object := ofKind("Deployment", componentsOf(t, "addon-components.yaml", variable))[0]
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, deployment, true); err != nil {
			t.Fatal(err)
		}
		pod := &deployment.Spec.Template.Spec
		container := pod.Containers[0].SecurityContext
		if got := []*int64{pod.SecurityContext.FSGroup, container.RunAsUser, container.RunAsGroup}; !reflect.DeepEqual(got, []*int64{want, want, want}) {
			t.Errorf("%s: got fsGroup, user and group %v", variable, got)
		}
	}
}

func TestCustomResources(t *testing.T) {
	crds := ofKind("CustomResourceDefinition", components(t))
	if len(crds) == 0 {
		t.Fatal("there are no CustomResourceDefinitions")
	}
	for _, crd := range crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		if want := contract.CalculateCRDName(group, kind); crd.GetName() != want {
			t.Errorf("the CRD is named %s, Cluster API looks for %s", crd.GetName(), want)
		}
		if got := crd.GetLabels()[clusterv1.GroupVersion.Group+"/"+clusterv1.GroupVersion.Version]; got == "" {
			t.Errorf("%s has no label with the version for the contract %s", crd.GetName(), clusterv1.GroupVersion.Version)
		}
		if !strings.HasSuffix(group, ".cluster.x-k8s.io") {
			t.Errorf("%s does not belong to this project: clusterctl would take ownership of it", crd.GetName())
		}
		// Templates are in the workload cluster, so clusterctl must not move them.
		for _, label := range []string{clusterctlv1.ClusterctlMoveLabel, clusterctlv1.ClusterctlMoveHierarchyLabel} {
			if _, ok := crd.GetLabels()[label]; ok {
				t.Errorf("%s has the label %s", crd.GetName(), label)
			}
		}
	}
}

func TestManager(t *testing.T) {
	deployments := ofKind("Deployment", components(t))
	if len(deployments) != 1 {
		t.Fatalf("got %d Deployments, want 1", len(deployments))
	}
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(deployments[0].Object, deployment, true); err != nil {
		t.Fatal(err)
	}
	pod := &deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 || pod.Containers[0].Name != "manager" {
		t.Fatalf("got containers %v, want one, manager", pod.Containers)
	}
	manager := &pod.Containers[0]
	if manager.Image != image {
		t.Errorf("the image is %s, want %s", manager.Image, image)
	}
	for _, variable := range manager.Env {
		if variable.ValueFrom == nil {
			t.Setenv(variable.Name, variable.Value)
		}
	}
	// The contract requires --namespace. If it is empty, it means all namespaces, which is the default.
	options, err := operator.ParseOptions(append(manager.Args, "--namespace=")...)
	if err != nil {
		t.Fatalf("the operator does not accept these arguments: %v", err)
	}
	if options.ClusterName != "" || options.ClusterNamespace != "" || options.Core.DisableLeaderElection {
		t.Errorf("not the defaults: %+v", options)
	}
	security := manager.SecurityContext
	if !*security.RunAsNonRoot || !*security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation || *security.RunAsUser != 65532 {
		t.Errorf("the security context is %v", security)
	}
}

func TestMetadata(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "metadata.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	metadata := &clusterctlv1.Metadata{}
	if err := yaml.UnmarshalStrict(content, metadata); err != nil {
		t.Fatal(err)
	}
	if metadata.Kind != "Metadata" || metadata.APIVersion != clusterctlv1.GroupVersion.String() || len(metadata.ReleaseSeries) == 0 {
		t.Errorf("clusterctl does not accept this: %+v", metadata)
	}
	for _, series := range metadata.ReleaseSeries {
		if series.Contract != clusterv1.GroupVersion.Version {
			t.Errorf("series %d.%d has contract %s, want %s", series.Major, series.Minor, series.Contract, clusterv1.GroupVersion.Version)
		}
	}
}

func TestCRDsBesides(t *testing.T) {
	out, err := build(t, version, image)
	if err != nil {
		t.Fatal(err)
	}
	files := read(t, out)
	for file, want := range map[string][]string{
		"karpenter-capi-crds.yaml": {"instancetypecatalogs.karpenter.cluster.x-k8s.io", "karpentermachinetemplates.karpenter.cluster.x-k8s.io"},
		"karpenter-crds.yaml":      {"capacitybuffers.autoscaling.x-k8s.io", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "nodepools.karpenter.sh"},
	} {
		var got []string
		for _, object := range decode(t, files[file]) {
			got = append(got, object.GetName())
			if object.GetKind() != "CustomResourceDefinition" {
				t.Errorf("%s has a %s", file, object.GetKind())
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", file, got, want)
		}
	}
}

// For an operator in the management cluster, clusterctl creates neither kinds nor rights of the workload cluster, and no
// namespace, because that of the Cluster exists.
func TestManagementComponents(t *testing.T) {
	var got []string
	for _, object := range componentsOf(t, "addon-components-management.yaml") {
		got = append(got, object.GetKind()+" "+object.GetName())
		if label := object.GetLabels()[clusterv1.ProviderNameLabel]; label != provider {
			t.Errorf("%s %s: label %s is %q", object.GetKind(), object.GetName(), clusterv1.ProviderNameLabel, label)
		}
		switch object.GetKind() {
		case "RoleBinding":
			ref, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			if !slices.ContainsFunc(got, func(id string) bool { return strings.HasSuffix(id, "Role "+ref) }) {
				t.Errorf("%s binds the role %s, which does not exist", object.GetName(), ref)
			}
		case "Role":
			role := &rbacv1.Role{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, role, true); err != nil {
				t.Fatal(err)
			}
			want := []rbacv1.PolicyRule{
				{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
				{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"karpenter-capi"}, Verbs: []string{"get", "update"}},
				{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
			}
			if !reflect.DeepEqual(role.Rules, want) {
				t.Errorf("role %s has the rules %v, want %v", role.Name, role.Rules, want)
			}
		case "Deployment":
			deployment := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, deployment, true); err != nil {
				t.Fatal(err)
			}
			pod := &deployment.Spec.Template.Spec
			options, err := operator.ParseOptions(pod.Containers[0].Args...)
			if err != nil {
				t.Fatal(err)
			}
			if want := pod.Containers[0].VolumeMounts[0].MountPath + "/kubeconfig"; options.WorkloadKubeconfig != want || options.Core.LeaderElectionName != "karpenter-capi" {
				t.Errorf("the kubeconfig is %s, and the lease %s", options.WorkloadKubeconfig, options.Core.LeaderElectionName)
			}
			if secret := pod.Volumes[0].Secret; secret.SecretName != "cluster-kubeconfig" || secret.Items[0].Key != "value" {
				t.Errorf("it mounts %v", secret)
			}
		}
	}
	want := []string{
		"ClusterRole karpenter-capi-system-management-cluster-role", "ClusterRole karpenter-capi-system-management-role",
		"ClusterRole karpenter-capi-system-metrics-reader-role", "ClusterRole karpenter-capi-system-metrics-role",
		"ClusterRoleBinding karpenter-capi-system-management-cluster-rolebinding", "ClusterRoleBinding karpenter-capi-system-metrics-rolebinding",
		"Deployment karpenter-capi-controller-manager",
		"Role karpenter-capi-leader-election-role",
		"RoleBinding karpenter-capi-leader-election-rolebinding", "RoleBinding karpenter-capi-management-rolebinding",
		"ServiceAccount karpenter-capi-manager",
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
