// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// Request identifies a remediation request, which is in the namespace of the served Cluster.
type Request struct {
	Kind schema.GroupKind
	// Name is that of the Machine.
	Name string
	// Operation identifies the restart for which it was created.
	Operation string
}

// RequestOf returns the request that the annotation of a claim names. It returns false if the claim has none, or a user has
// written something else there.
func RequestOf(claim *karpv1.NodeClaim) (Request, bool) {
	parts := strings.SplitN(claim.Annotations[v1alpha1.RemediationAnnotation], "/", 3)
	if len(parts) < 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Request{}, false
	}
	return Request{Kind: schema.ParseGroupKind(parts[0]), Name: parts[1], Operation: parts[2]}, true
}

// String returns the value of the annotation.
func (r Request) String() string {
	return strings.Join([]string{r.Kind.String(), r.Name, r.Operation}, "/")
}

// isFor reports whether an object is the request, created for a claim of a Cluster. A user can write the annotation of a claim.
func (r Request) isFor(object *unstructured.Unstructured, claim, cluster string) bool {
	return object.GetAnnotations()[v1alpha1.RemediationOperationAnnotation] == operationOf(claim, r.Operation) &&
		object.GetLabels()[clusterv1.ClusterNameLabel] == cluster
}

// operationOf returns the value of the annotation of a request for a restart of a claim's Machine.
func operationOf(claim, operation string) string { return claim + "/" + operation }

// KindOf returns the kind of the requests that are created from a remediation template, as Cluster API determines it.
func KindOf(ref clusterv1.ContractVersionedObjectReference) schema.GroupKind {
	return schema.GroupKind{Group: ref.APIGroup, Kind: strings.TrimSuffix(ref.Kind, clusterv1.TemplateSuffix)}
}

// Needed reports whether the request of a claim is still needed, because its restart has not ended.
func Needed(claim *karpv1.NodeClaim) bool {
	return claim.DeletionTimestamp.IsZero() && nodeclaims.ConditionOf(claim, karpv1.ConditionTypeRebooting).IsTrue()
}

// newRequest returns the request for a Machine, as Cluster API generates it from the template.
func newRequest(template *unstructured.Unstructured, machine *clusterv1.Machine, claim, operation string) (*unstructured.Unstructured, error) {
	request, err := external.GenerateTemplate(&external.GenerateTemplateInput{
		Template:    template,
		TemplateRef: &corev1.ObjectReference{APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Name: template.GetName(), Namespace: template.GetNamespace()},
		Namespace:   machine.Namespace,
		Name:        machine.Name,
		ClusterName: machine.Spec.ClusterName,
		OwnerRef:    &metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: machine.Name, UID: machine.UID},
		Annotations: map[string]string{v1alpha1.RemediationOperationAnnotation: operationOf(claim, operation)},
	})
	if err != nil {
		return nil, fmt.Errorf("generating a request from %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	return request, nil
}

// step is what comes next for the request of a Machine.
type step string

const (
	// create creates the request.
	create step = "create"
	// remove deletes the request of an earlier restart.
	remove step = "remove"
	// wait waits until a request that is being deleted no longer exists.
	wait step = "wait"
	// done does nothing, because a request asks for a restart.
	done step = "done"
)

// next returns what comes next for a restart, which the value of the annotation identifies, given the request with the name of the
// Machine; nil if there is none.
func next(existing *unstructured.Unstructured, operation string) step {
	if existing == nil {
		return create
	}
	of, own := existing.GetAnnotations()[v1alpha1.RemediationOperationAnnotation]
	switch {
	case existing.GetDeletionTimestamp() != nil:
		return wait
	case own && of != operation:
		return remove
	default:
		return done
	}
}
