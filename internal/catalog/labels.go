// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// ownLabels are the labels of this operator for which every instance type has a
// requirement.
var ownLabels = append([]string{v1alpha1.InstanceCPULabel, v1alpha1.InstanceGPUCountLabel}, v1alpha1.SettableLabels...)

// zonesOfVolumes are the labels with which volumes of CSI drivers name their zone. The
// values are those of the zone label of Nodes. If Karpenter did not know these labels,
// Pods with such volumes would wait for a label that no instance type has.
var zonesOfVolumes = []string{
	"topology.ebs.csi.aws.com/zone",
	"topology.disk.csi.azure.com/zone",
	"topology.gke.io/zone",
	"topology.csi.vmware.com/k8s-zone",
	"topology.cinder.csi.openstack.org/zone",
}

// Karpenter's metrics get one label for each well-known label when they are set up
// (karpenter: pkg/controllers/metrics/node/controller.go), and prometheus panics if one
// is added later. Therefore this registers the labels that are known from the start, but
// not the templates' own labels: see custom.
func init() {
	karpv1.WellKnownLabels.Insert(ownLabels...).Insert(v1alpha1.ReservationIDLabel)
	cloudprovider.ReservationIDLabel = v1alpha1.ReservationIDLabel
	cloudprovider.ReservedCapacityLabels.Insert(v1alpha1.ReservationIDLabel)
	scheduling.AllowUndefinedWellKnownLabels = func(options *scheduling.CompatibilityOptions) {
		options.AllowUndefined = custom.Load().known
	}
	for _, label := range zonesOfVolumes {
		karpv1.NormalizedLabels[label] = corev1.LabelTopologyZone
	}
	custom.Store(&customLabels{known: karpv1.WellKnownLabels, keys: sets.New[string]()})
}

// customLabels are the label keys that the instance types of all templates give to their
// Nodes, without the well-known ones. Nodes of a NodePool that does not mention them can
// still have them: like a well-known label, they are undefined there. A customLabels is
// never modified.
type customLabels struct {
	keys sets.Set[string]
	// known are these and the well-known ones.
	known sets.Set[string]
}

var (
	custom    atomic.Pointer[customLabels]
	customise sync.Mutex
)

// register registers the label keys of types with Karpenter. Keys are only added, because
// Nodes with a label stay when the template no longer gives it.
func register(types []Type) *customLabels {
	added := sets.New[string]()
	before := custom.Load()
	for i := range types {
		for key := range types[i].Labels {
			if !before.known.Has(key) {
				added.Insert(key)
			}
		}
	}
	if added.Len() == 0 {
		return before
	}
	customise.Lock()
	defer customise.Unlock()
	before = custom.Load()
	if !before.known.IsSuperset(added) {
		custom.Store(&customLabels{keys: before.keys.Union(added), known: before.known.Union(added)})
	}
	return custom.Load()
}

// without returns instance types without requirements for some labels.
func without(instanceTypes []*cloudprovider.InstanceType, keys []string) []*cloudprovider.InstanceType {
	return lo.Map(instanceTypes, func(it *cloudprovider.InstanceType, _ int) *cloudprovider.InstanceType {
		return changed(it, lo.OmitByKeys(it.Requirements, keys), it.Offerings)
	})
}

// ownKeys returns the custom label keys that the types of one template give.
func ownKeys(types []Type) sets.Set[string] {
	keys := sets.New[string]()
	for i := range types {
		for key := range types[i].Labels {
			if !karpv1.WellKnownLabels.Has(key) {
				keys.Insert(key)
			}
		}
	}
	return keys
}

// checkLabels returns an error for labels that no Node can have, or that an instance type must not set. With one
// of them, core could not store what Create returns, and each NodeClaim of the type would be launched again.
func checkLabels(labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			return fmt.Errorf("label %q is not a label key: use an optional domain in lower case and a slash, then at most 63 letters, digits, '-', '_' or '.'", key)
		case len(validation.IsValidLabelValue(value)) > 0:
			return fmt.Errorf("label %s: %q is not a label value: use at most 63 letters, digits, '-', '_' or '.'", key, value)
		case isSetElsewhere(key):
			return fmt.Errorf("label %s must not be set here: the operator, Karpenter or the Node sets it", key)
		case isTrusted(key):
			return fmt.Errorf("label %s must not be set here: Pods and controllers know Nodes of others by it", key)
		}
	}
	return nil
}

// isSetElsewhere reports whether Karpenter, the Node or the offering sets a label, or whether it follows from the
// name or the capacity of an instance type. Karpenter refuses all other labels in its own domain.
func isSetElsewhere(key string) bool {
	domain := karpv1.GetLabelDomain(key)
	return slices.Contains([]string{corev1.LabelHostname, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone}, key) ||
		isIn(domain, "karpenter.sh") ||
		domain == v1alpha1.Group && !slices.Contains(v1alpha1.SettableLabels, key)
}

// isTrusted reports whether a label shows that a Node is one of a control plane, or one to which only administrators
// of the cluster assign Pods (Kubernetes: docs/reference/access-authn-authz/admission-controllers, NodeRestriction).
// Karpenter would set it on Nodes with its own rights.
func isTrusted(key string) bool {
	return slices.Contains([]string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/etcd"}, key) ||
		isIn(karpv1.GetLabelDomain(key), corev1.LabelNamespaceNodeRestriction)
}

// isIn reports whether a domain is another one, or below it.
func isIn(domain, other string) bool { return domain == other || strings.HasSuffix(domain, "."+other) }

// NodeLabels returns the labels of a type's Nodes, without instance type, zone and
// capacity type: those that follow from the capacity, and those that are set.
func (t *Type) NodeLabels() map[string]string {
	return merged(derived(t.Capacity), withDefaults(t.Labels))
}

// derived returns the labels that follow from a capacity.
func derived(capacity corev1.ResourceList) map[string]string {
	labels := map[string]string{
		v1alpha1.InstanceCPULabel:    strconv.FormatInt(capacity.Cpu().MilliValue()/1000, 10),
		v1alpha1.InstanceMemoryLabel: strconv.FormatInt(capacity.Memory().Value()/mebibyte, 10),
	}
	if count := gpus(capacity); count > 0 {
		labels[v1alpha1.InstanceGPUCountLabel] = strconv.FormatInt(count, 10)
	}
	return labels
}

// gpus returns the number of GPUs of all vendors. The name of their resource, after the
// domain, begins with gpu, such as in nvidia.com/gpu but not in gpu.intel.com/i915.
func gpus(capacity corev1.ResourceList) int64 {
	var count int64
	for resource, quantity := range capacity {
		if _, name, _ := strings.Cut(string(resource), "/"); strings.HasPrefix(name, "gpu") {
			count += quantity.Value()
		}
	}
	return count
}
