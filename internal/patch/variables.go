// SPDX-License-Identifier: Apache-2.0

package patch

// Variables are the variables for Go templates in patches. A value that an offering lacks is
// the empty string.
type Variables struct {
	// InstanceType, Zone and CapacityType identify the offering.
	InstanceType, Zone, CapacityType string
	// FailureDomain is a failure domain of the Cluster. Usually it has the name of the zone.
	FailureDomain string
	// ReservationID is the id of a reserved offering's reservation.
	ReservationID string
	// Region, Architecture and OperatingSystem are labels of the instance type:
	// topology.kubernetes.io/region, kubernetes.io/arch and kubernetes.io/os.
	Region, Architecture, OperatingSystem string
	// Labels are the labels of the instance type.
	Labels map[string]string
	// MaxPods is how many Pods the kubelet must accept.
	MaxPods int32
	// KubeReserved is what the kubelet must reserve for the daemons of Kubernetes.
	KubeReserved map[string]string
	// ClusterName is the name of the served Cluster.
	ClusterName string
	// KubernetesVersion is template.spec.version, such as v1.36.3.
	KubernetesVersion string
	// TemplateName is the name of the KarpenterMachineTemplate.
	TemplateName string
}

// values returns the variables by the names that templates use.
func (v Variables) values() map[string]any {
	return map[string]any{
		"instanceType":      v.InstanceType,
		"zone":              v.Zone,
		"failureDomain":     v.FailureDomain,
		"capacityType":      v.CapacityType,
		"reservationID":     v.ReservationID,
		"region":            v.Region,
		"architecture":      v.Architecture,
		"operatingSystem":   v.OperatingSystem,
		"labels":            v.Labels,
		"maxPods":           v.MaxPods,
		"kubeReserved":      v.KubeReserved,
		"clusterName":       v.ClusterName,
		"kubernetesVersion": v.KubernetesVersion,
		"templateName":      v.TemplateName,
	}
}
