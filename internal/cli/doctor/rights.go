// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/rights"
)

// rightsAreComplete finds rights that the operator lacks: those without which it does not start, and those to the kinds of providers
// that are in use, to which an installation can narrow its roles.
func rightsAreComplete(ctx context.Context, v *view.View) ([]Finding, error) {
	operator, found := operatorOf(ctx, v, "it is not known whether the operator has its rights")
	if operator == nil {
		return found, nil
	}
	for _, workload := range []bool{true, false} {
		user, unknown := userOf(ctx, operator, workload)
		if unknown != nil {
			found = append(found, *unknown)
			continue
		}
		needed, err := neededIn(v, operator, workload)
		if err != nil {
			return found, err
		}
		name := lo.Ternary(workload, "workload cluster", "management cluster")
		missing, err := rights.Missing(ctx, needed, v.Allows(workload, user))
		switch {
		case apierrors.IsForbidden(err):
			found = append(found, warning(objectOf(user), "Repeat this as a user who may. The operator logs at its start which rights it lacks", "you may not create SubjectAccessReviews in the %s, so it is not known whether user %s has its rights", name, user.Name))
		case err != nil:
			return found, fmt.Errorf("%s: %w", name, err)
		}
		for _, lack := range rights.Describe(missing, "user "+user.Name) {
			found = append(found, problem(objectOf(user), strings.ToUpper(lack.Do[:1])+lack.Do[1:], "in the %s, %s", name, lack.Message))
		}
	}
	return found, nil
}

// userOf returns who the operator is in a cluster, or why that is not known.
func userOf(ctx context.Context, operator *view.Operator, workload bool) (rights.User, *Finding) {
	from := operator.Kubeconfig()
	if from == nil || from.ForWorkload != workload {
		pod := &operator.Pods[0]
		return rights.ServiceAccount(pod.Namespace, cmp.Or(pod.Spec.ServiceAccountName, "default")), nil
	}
	credentials, unknown := inspect(ctx, operator, from)
	if unknown != nil {
		// The check of the credentials says what is wrong with the kubeconfig.
		return rights.User{}, lo.ToPtr(warning(unknown.Object, unknown.Do, "it is not known who the operator is in %s, and so not whether it has its rights there", clusterOf(from)))
	}
	if credentials.User == "" {
		return rights.User{}, lo.ToPtr(warning("Secret/"+from.Secret, "Read the log of the operator, which has at its start the rights that it lacks", "its kubeconfig does not show who the operator is in %s, and so not whether it has its rights there", clusterOf(from)))
	}
	return rights.Authenticated(credentials.User, credentials.Groups), nil
}

// objectOf returns the kind and name of a user.
func objectOf(user rights.User) string {
	if parts := strings.Split(user.Name, ":"); len(parts) == 4 && strings.HasPrefix(user.Name, "system:serviceaccount:") {
		return "ServiceAccount/" + parts[3]
	}
	return "User/" + user.Name
}

// neededIn returns the rights that the operator needs in a cluster.
func neededIn(v *view.View, operator *view.Operator, workload bool) ([]rights.Right, error) {
	if workload {
		needed, err := rights.Needed(rights.Workload, "")
		if ignored, unset := strconv.ParseBool(operator.Setting("ignore-dra-requests", "IGNORE_DRA_REQUESTS")); err != nil || ignored || unset != nil {
			return needed, err
		}
		ofDevices, err := rights.ForDevices()
		return append(needed, ofDevices...), err
	}
	namespace := cmp.Or(operator.Setting("cluster-namespace", "CLUSTER_NAMESPACE"), operator.Setting("namespace", "")) // empty for all
	ofNamespace, err := rights.Needed(rights.Management, namespace)
	if err != nil {
		return nil, err
	}
	ofCluster, err := rights.Needed(rights.ManagementCluster, "")
	if err != nil {
		return nil, err
	}
	ofKinds, err := rights.OfKinds(rights.Management, v.Served().Namespace, kindsInUse(v))
	return slices.Concat(ofNamespace, ofCluster, ofKinds, ofInventories(v)), err
}

// ofInventories returns the rights to what capacityFrom of the offerings of catalogs counts.
func ofInventories(v *view.View) []rights.Right {
	var needed []rights.Right
	for i := range v.Catalogs {
		spec := &v.Catalogs[i].Spec
		offerings := append(slices.Clone(spec.Offerings), lo.FlatMap(spec.InstanceTypes, func(t v1alpha1.InstanceType, _ int) []v1alpha1.Offering { return t.Offerings })...)
		for _, from := range lo.FlatMap(offerings, func(o v1alpha1.Offering, _ int) []v1alpha1.CapacitySource { return o.CapacityFrom }) {
			version, err := schema.ParseGroupVersion(from.APIVersion)
			if err != nil {
				continue // the condition of the catalog reports it
			}
			resource := reference.ResourceOf(schema.GroupKind{Group: version.Group, Kind: from.Kind})
			for _, verb := range []string{"list", "watch"} {
				needed = append(needed, rights.Right{Group: version.Group, Resource: resource, Verb: verb, Namespace: cmp.Or(from.Namespace, v.Served().Namespace)})
			}
		}
	}
	return lo.Uniq(needed)
}

// kindsInUse returns the kinds of providers that templates, catalogs, Machines and the Cluster refer to.
func kindsInUse(v *view.View) []rights.Kind {
	var used []rights.Kind
	add := func(ref clusterv1.ContractVersionedObjectReference, readOnly bool) {
		if ref.IsDefined() {
			resource := reference.ResourceOf(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
			used = append(used, rights.Kind{Group: ref.APIGroup, Resource: resource, ReadOnly: readOnly})
		}
	}
	// A base template is copied, and what Cluster API creates from the copy is only read. Of the base of a MachinePool, and of a
	// remediation template, the operator creates the object itself.
	instantiated := func(ref clusterv1.ContractVersionedObjectReference, creates bool) {
		created := ref
		created.Kind = strings.TrimSuffix(ref.Kind, clusterv1.TemplateSuffix)
		add(ref, creates)
		add(created, !creates)
	}
	base := func(ref clusterv1.ContractVersionedObjectReference, of *v1alpha1.KarpenterMachineTemplate) {
		instantiated(ref, of.Spec.ScalableResource.Kind == v1alpha1.ScalableResourceKindMachinePool)
	}
	for i := range v.Templates {
		template := &v.Templates[i]
		base(lo.FromPtr(template.Spec.Template.Spec.InfrastructureRef), template)
		base(template.Spec.Template.Spec.Bootstrap.ConfigRef, template)
		if template.Spec.Remediation != nil {
			instantiated(template.Spec.Remediation.TemplateRef, true)
		}
		for _, ref := range template.Spec.CatalogRefs {
			if catalog, found := lo.Find(v.Catalogs, func(c v1alpha1.InstanceTypeCatalog) bool { return c.Name == ref.Name }); found {
				for _, instanceType := range catalog.Spec.InstanceTypes {
					base(lo.FromPtr(instanceType.InfrastructureRef), template)
				}
			}
		}
	}
	for i := range v.Machines {
		add(v.Machines[i].Spec.InfrastructureRef, true)
		add(v.Machines[i].Spec.Bootstrap.ConfigRef, true)
	}
	if v.Cluster != nil {
		add(v.Cluster.Spec.ControlPlaneRef, true)
	}
	return lo.Uniq(used)
}
