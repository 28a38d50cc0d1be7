// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Annotations with which cluster-autoscaler's Cluster API provider scales from zero
// (its README, "Scale from zero support").
const (
	scaleFromZero       = "capacity.cluster-autoscaler.kubernetes.io/"
	cpuAnnotation       = scaleFromZero + "cpu"
	memoryAnnotation    = scaleFromZero + "memory"
	diskAnnotation      = scaleFromZero + "ephemeral-disk"
	maxPodsAnnotation   = scaleFromZero + "maxPods"
	gpuCountAnnotation  = scaleFromZero + "gpu-count"
	gpuTypeAnnotation   = scaleFromZero + "gpu-type"
	labelsAnnotation    = scaleFromZero + "labels"
	taintsAnnotation    = scaleFromZero + "taints"
	volumesAnnotation   = scaleFromZero + "csi-driver"
	devicesAnnotation   = scaleFromZero + "dra-driver"
	defaultGPU          = corev1.ResourceName("nvidia.com/gpu")
	expectQuantity      = "a quantity of at least 0, such as 4 or 16Gi"
	expectWholeNumber   = "a whole number of at least 0"
	expectPrice         = "a decimal number of at least 0, such as 0.096"
	expectTaints        = "taints in the form key=value:effect,key:effect with the effect NoSchedule, PreferNoSchedule or NoExecute"
	expectLabels        = "labels in the form key=value,key=value"
	expectDRADriver     = "the name of a DRA driver, such as gpu.nvidia.com"
	expectVolumes       = "CSI drivers and numbers in the form driver=number,driver=number, such as ebs.csi.aws.com=26"
	expectZones         = "names of zones separated by commas, such as us-east-1a,us-east-1b"
	expectCapacityTypes = karpv1.CapacityTypeOnDemand + " or " + karpv1.CapacityTypeSpot
	expectResource      = "the name of a resource, such as nvidia.com/gpu"
)

// wrongAnnotation returns the error for an annotation with an invalid value.
func wrongAnnotation(key, expected, found string) error {
	return fmt.Errorf("annotation %s: expected %s, found %q", key, expected, found)
}

// annotations are the annotations of a discovered object.
type annotations map[string]string

// capacity returns the resources that the annotations set. gpu-type defaults to
// nvidia.com/gpu, unless a DRA driver publishes the GPUs as devices.
func (a annotations) capacity() (corev1.ResourceList, error) {
	capacity := corev1.ResourceList{}
	for _, named := range []struct {
		key      string
		resource corev1.ResourceName
	}{
		{cpuAnnotation, corev1.ResourceCPU}, {memoryAnnotation, corev1.ResourceMemory}, {diskAnnotation, corev1.ResourceEphemeralStorage},
	} {
		if text, given := a[named.key]; given {
			quantity, err := parseQuantity(text)
			if err != nil {
				return nil, wrongAnnotation(named.key, expectQuantity, text)
			}
			capacity[named.resource] = quantity
		}
	}
	pods, err := a.count(maxPodsAnnotation)
	if err != nil {
		return nil, err
	}
	if pods != nil {
		capacity[corev1.ResourcePods] = *resource.NewQuantity(int64(*pods), resource.DecimalSI)
	}
	count, err := a.count(gpuCountAnnotation)
	if err != nil {
		return nil, err
	}
	name := lo.CoalesceOrEmpty(corev1.ResourceName(a[gpuTypeAnnotation]), defaultGPU)
	if len(validation.IsQualifiedName(string(name))) > 0 {
		return nil, wrongAnnotation(gpuTypeAnnotation, expectResource, string(name))
	}
	if a[devicesAnnotation] != "" && a[gpuTypeAnnotation] == "" {
		return capacity, nil
	}
	if count != nil {
		capacity[name] = *resource.NewQuantity(int64(*count), resource.DecimalSI)
	}
	return capacity, nil
}

// safeQuantity is what the CustomResourceDefinitions accept as a quantity (hack/make/crd.sed). Package resource
// also accepts larger exponents, and comparing 1e2147483647 with another quantity never ends.
var safeQuantity = regexp.MustCompile(`^[-+]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$`)

// parseQuantity returns the quantity of at least 0 that a text is.
func parseQuantity(text string) (resource.Quantity, error) {
	if !safeQuantity.MatchString(text) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	quantity, err := resource.ParseQuantity(text)
	if err == nil && quantity.Sign() < 0 {
		err = resource.ErrNumeric
	}
	return quantity, err
}

// labels returns the labels that the annotation gives to nodes.
func (a annotations) labels() (map[string]string, error) {
	given, err := labels.ConvertSelectorToLabelsMap(strings.TrimSuffix(strings.TrimSpace(a[labelsAnnotation]), ","))
	if err != nil {
		return nil, wrongAnnotation(labelsAnnotation, expectLabels, a[labelsAnnotation])
	}
	return given, nil
}

// zones returns the zones that the annotation names; none if it is not set.
func (a annotations) zones() ([]string, error) {
	var zones []string
	for zone := range strings.SplitSeq(a[v1alpha1.DiscoveredZonesAnnotation], ",") {
		zone = strings.TrimSpace(zone)
		if len(validation.IsValidLabelValue(zone)) > 0 {
			return nil, wrongAnnotation(v1alpha1.DiscoveredZonesAnnotation, expectZones, a[v1alpha1.DiscoveredZonesAnnotation])
		}
		zones = append(zones, zone)
	}
	zones = lo.Uniq(lo.Compact(zones))
	slices.Sort(zones)
	return zones, nil
}

func (a annotations) capacityType() (string, error) {
	switch text := a[v1alpha1.DiscoveredCapacityTypeAnnotation]; text {
	case "":
		return karpv1.CapacityTypeOnDemand, nil
	case karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot:
		return text, nil
	default:
		return "", wrongAnnotation(v1alpha1.DiscoveredCapacityTypeAnnotation, expectCapacityTypes, text)
	}
}

// price returns the price that the annotation sets, or else one that follows from the capacity.
func (a annotations) price(capacity corev1.ResourceList, capacityType string, prices prices) (float64, error) {
	text, given := a[v1alpha1.DiscoveredPriceAnnotation]
	if !given {
		return prices.estimate(capacity) * prices.factor(capacityType), nil
	}
	price, err := parsePrice(text)
	if err != nil {
		return 0, wrongAnnotation(v1alpha1.DiscoveredPriceAnnotation, expectPrice, text)
	}
	return price, nil
}

// count returns the whole number that an annotation sets; nil if it is not set.
func (a annotations) count(key string) (*int32, error) {
	text, given := a[key]
	if !given {
		return nil, nil
	}
	count, err := strconv.ParseInt(text, 10, 32)
	if err != nil || count < 0 {
		return nil, wrongAnnotation(key, expectWholeNumber, text)
	}
	return new(int32(count)), nil
}

// nodeLabels returns the labels that an instance type can give to its Nodes.
func nodeLabels(given map[string]string) map[string]string {
	return lo.OmitBy(given, func(key, _ string) bool { return isSetElsewhere(key) })
}

// merged returns a map with the entries of all maps; the last value of a key wins.
func merged[M ~map[K]V, K comparable, V any](all ...M) M {
	result := M{}
	for _, m := range all {
		maps.Copy(result, m)
	}
	return result
}

// gpuDevice is the value of the attribute type with which cluster-autoscaler plans devices (cluster-autoscaler:
// cloudprovider/clusterapi/clusterapi_unstructured.go, InstanceResourceSlices).
const gpuDevice = "gpu"

// devices returns the devices that the annotations of cluster-autoscaler describe: gpu-count GPUs of a DRA driver.
func (a annotations) devices() (Devices, error) {
	driver := a[devicesAnnotation]
	count, err := a.count(gpuCountAnnotation)
	if driver == "" || err != nil || lo.FromPtr(count) == 0 {
		return Devices{}, err
	}
	if !isDriver(driver) {
		return Devices{}, wrongAnnotation(devicesAnnotation, expectDRADriver, driver)
	}
	found := Devices{Groups: []v1alpha1.Device{{
		Driver: driver, Name: gpuDevice, Count: count, Attributes: map[string]v1alpha1.DeviceAttribute{"type": {String: new(gpuDevice)}},
	}}}
	return found, checkDevices(found)
}
