// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// logSize is how much of each log the bundle has, from its end.
const logSize = 5 << 20

// The folders of objects. In one cluster, each object is in one of them only.
const (
	workload   = "workload"
	management = "management"
	operator   = "operator"
)

// Collect collects what a view has, and what belongs to it. unread is what the view lacks.
func Collect(ctx context.Context, v *view.View, unread []error) *Bundle {
	b := newBundle(v.Now)
	for _, err := range unread {
		b.unread(err)
	}
	b.versions(ctx, v)
	b.workload(v)
	b.management(ctx, v)
	b.operator(ctx, v)
	return b
}

// Checks adds what the checks of doctor have printed.
func (b *Bundle) Checks(text []byte) { b.text("doctor.txt", text) }

func (b *Bundle) versions(ctx context.Context, v *view.View) {
	versions, errs := v.Versions(ctx)
	for _, err := range errs {
		b.unread(err)
	}
	content, err := yaml.Marshal(struct {
		Plugin string `json:"plugin"`
		view.Versions
	}{fmt.Sprint(build.Read()), versions})
	b.unread(err)
	b.text("versions.yaml", content)
}

// workload adds the objects of the workload cluster.
func (b *Bundle) workload(v *view.View) {
	addAll(b, workload, withoutBootstrapValues, v.Templates)
	addAll(b, workload, whole, v.Catalogs)
	addAll(b, workload, whole, v.NodePools)
	addAll(b, workload, whole, v.Claims)
	addAll(b, workload, withoutImages, v.Nodes)
}

// management adds the objects of the management cluster.
func (b *Bundle) management(ctx context.Context, v *view.View) {
	if v.Cluster != nil {
		b.add(management, withoutVariables, v.Cluster)
	}
	for _, resource := range v.Resources {
		b.add(management, whole, resource.API())
	}
	sets, err := v.MachineSets(ctx)
	b.unread(err)
	addAll(b, management, whole, sets)
	checks, err := v.HealthChecks(ctx)
	b.unread(err)
	addAll(b, management, whole, checks)
	addAll(b, management, whole, v.Machines)
	b.providers(ctx, v)
}

// providers adds the infrastructure and bootstrap objects of Machines.
func (b *Bundle) providers(ctx context.Context, v *view.View) {
	for i := range v.Machines {
		machine := &v.Machines[i]
		for _, ref := range []clusterv1.ContractVersionedObjectReference{machine.Spec.InfrastructureRef, machine.Spec.Bootstrap.ConfigRef} {
			if !ref.IsDefined() {
				continue
			}
			object, err := v.Object(ctx, ref)
			if err != nil {
				b.unread(fmt.Errorf("management cluster: %s %s/%s of Machine %s: %w", ref.Kind, machine.Namespace, ref.Name, machine.Name, err))
				continue
			}
			b.add(management, statusOnly, object)
		}
	}
}

// operator adds the operator's Pods and their logs, and the events of all objects.
func (b *Bundle) operator(ctx context.Context, v *view.View) {
	found, err := v.Operator(ctx)
	b.unread(err)
	if found != nil {
		addAll(b, operator, withoutEnvironment, found.Pods)
		for i := range found.Pods {
			b.logs(ctx, v, found, &found.Pods[i])
		}
		b.events(ctx, v, operator, found.InWorkload, found.Pods[0].Namespace)
	}
	b.events(ctx, v, workload, true, metav1.NamespaceDefault) // of objects without a namespace
	b.events(ctx, v, management, false, v.Served().Namespace)
}

// logs adds the log of the operator in a Pod, and that before its last restart.
func (b *Bundle) logs(ctx context.Context, v *view.View, of *view.Operator, pod *corev1.Pod) {
	restarts := int32(0)
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == view.Container(pod).Name {
			restarts = status.RestartCount
		}
	}
	for suffix, previous := range map[string]bool{".log": false, ".previous.log": true} {
		if previous && restarts == 0 {
			continue
		}
		content, err := v.Log(ctx, of, pod, previous, logSize)
		if err != nil {
			b.unread(fmt.Errorf("%s of Pod %s/%s: %w", suffix[1:], pod.Namespace, pod.Name, err))
		}
		if len(content) > 0 {
			b.text(operator+"/"+pod.Name+suffix, content)
		}
	}
}

// events adds those events of a namespace that are about objects of the bundle, or about NodeClaims: the events of NodeClaims that no
// longer exist show launches that have failed.
func (b *Bundle) events(ctx context.Context, v *view.View, folder string, inWorkload bool, namespace string) {
	all, err := v.EventsIn(ctx, inWorkload, namespace)
	b.unread(err)
	for i := range all {
		about := all[i].InvolvedObject
		if b.known[known("Event", all[i].Namespace, all[i].Name)] {
			continue // its namespace is also that of the operator
		}
		if b.known[known(about.Kind, about.Namespace, about.Name)] || about.Kind == "NodeClaim" && about.Namespace == "" {
			b.add(folder, whole, &all[i])
		}
	}
}

// addAll adds objects of one kind.
func addAll[T any, O interface {
	*T
	client.Object
}](b *Bundle, folder string, redact redaction, objects []T) {
	for i := range objects {
		b.add(folder, redact, O(&objects[i]))
	}
}
