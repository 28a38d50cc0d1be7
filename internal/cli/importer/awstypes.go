// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// awsType is a value of InstanceTypes of describe-instance-types.
type awsType struct {
	where                 string
	InstanceType          string
	SupportedUsageClasses []string
	BareMetal             bool
	ProcessorInfo         struct {
		SupportedArchitectures []string
		Manufacturer           string
	}
	VCpuInfo            struct{ DefaultVCpus int64 }
	MemoryInfo          struct{ SizeInMiB int64 }
	InstanceStorageInfo struct{ TotalSizeInGB int64 }
	EbsInfo             struct{ MaximumEbsAttachments int64 } // 0 for older versions of the command line
	NetworkInfo         struct {
		MaximumNetworkInterfaces  int64 // of all cards together
		Ipv4AddressesPerInterface int64
		DefaultNetworkCardIndex   int64
		NetworkCards              []awsNetworkCard
	}
	GpuInfo    struct{ Gpus []awsAccelerator }
	NeuronInfo struct {
		NeuronDevices []struct{ Count int64 }
	}
	InferenceAcceleratorInfo struct{ Accelerators []awsAccelerator }
}

type awsNetworkCard struct {
	NetworkCardIndex         int64
	MaximumNetworkInterfaces int64
	BaselineBandwidthInGbps  float64
}

type awsAccelerator struct {
	Name, Manufacturer string
	Count              int64
}

var awsArchitectures = map[string]string{"x86_64": karpv1.ArchitectureAmd64, "arm64": karpv1.ArchitectureArm64}

// machine returns a type in common terms; nil if it is left out.
func (in *awsInput) machine(t *awsType, options *Options) (*machine, error) {
	m := newMachine(t.where, t.InstanceType)
	for _, name := range t.ProcessorInfo.SupportedArchitectures {
		m.architecture = lo.CoalesceOrEmpty(m.architecture, awsArchitectures[name])
	}
	if m.architecture == "" {
		in.skipped.add("of architectures that do not run Linux nodes, such as x86_64_mac", m.name)
		return nil, nil
	}
	m.cpu = *resource.NewQuantity(t.VCpuInfo.DefaultVCpus, resource.DecimalSI)
	m.memory = times(t.MemoryInfo.SizeInMiB, mebibyte)
	network, interfaces := t.NetworkInfo, t.interfaces()
	if network.Ipv4AddressesPerInterface < 1 || interfaces < 1 {
		return nil, fmt.Errorf("%s: expected NetworkInfo with Ipv4AddressesPerInterface and, for the default network card, MaximumNetworkInterfaces, found %d and %d",
			m.where, network.Ipv4AddressesPerInterface, interfaces)
	}
	// As many as the VPC CNI has addresses for, and two on the host's network.
	m.count(corev1.ResourcePods, interfaces*(network.Ipv4AddressesPerInterface-1)+2)
	var bandwidth float64
	for _, card := range network.NetworkCards {
		bandwidth += card.BaselineBandwidthInGbps * 1000
	}
	m.label(v1alpha1.InstanceNetworkBandwidthLabel, strconv.FormatInt(int64(bandwidth), 10))
	m.label(v1alpha1.InstanceLocalStorageLabel, strconv.FormatInt(times(t.InstanceStorageInfo.TotalSizeInGB, gigabyte)/gibibyte, 10))
	m.label(v1alpha1.InstanceCPUManufacturerLabel, strings.ToLower(t.ProcessorInfo.Manufacturer))
	if err := awsName(&m); err != nil {
		return nil, err
	}
	t.accelerators(&m)
	t.attachments(&m)
	in.addOffers(&m, t, options)
	return &m, nil
}

// interfaces returns how many network interfaces the VPC CNI can use: those of the default network card
// (amazon-vpc-cni-k8s: misc/eni-max-pods.txt).
func (t *awsType) interfaces() int64 {
	if len(t.NetworkInfo.NetworkCards) == 0 { // older versions of the command line
		return t.NetworkInfo.MaximumNetworkInterfaces
	}
	card, _ := lo.Find(t.NetworkInfo.NetworkCards, func(c awsNetworkCard) bool {
		return c.NetworkCardIndex == t.NetworkInfo.DefaultNetworkCardIndex
	})
	return card.MaximumNetworkInterfaces
}

const ebsDriver = "ebs.csi.aws.com"

// attachments sets how many volumes can be attached: all but the one of the operating system. Amazon's number is usually without
// the first network interface, the disks and the accelerators, where these count. Further network interfaces, such as those
// that the VPC CNI adds, take the place of a volume then, which Nodes report (aws-ebs-csi-driver: pkg/driver/node.go,
// getVolumesLimit).
func (t *awsType) attachments(m *machine) {
	if limit := t.EbsInfo.MaximumEbsAttachments; limit > 0 {
		m.attachable(ebsDriver, limit-1)
	}
}

// awsFamily is the family of a type: letters, and the generation.
var awsFamily = regexp.MustCompile(`^([a-z]+)(?:-[0-9]+tb)?([0-9]*)`)

// awsName sets the labels that follow from the name.
func awsName(m *machine) error {
	family, size, found := strings.Cut(m.name, ".")
	parts := awsFamily.FindStringSubmatch(family)
	if !found || parts == nil {
		return fmt.Errorf("%s: expected a name such as m5.large, found %q", m.where, m.name)
	}
	m.label(v1alpha1.InstanceFamilyLabel, family)
	m.label(v1alpha1.InstanceSizeLabel, size)
	m.label(v1alpha1.InstanceCategoryLabel, parts[1])
	m.label(v1alpha1.InstanceGenerationLabel, parts[2])
	return nil
}

// accelerators sets the GPUs and other accelerators of a machine.
func (t *awsType) accelerators(m *machine) {
	for _, gpu := range t.GpuInfo.Gpus {
		switch strings.ToLower(gpu.Manufacturer) {
		case "nvidia":
			m.gpus(nvidiaGPU, gpu.Count, gpu.Name)
		case "amd":
			m.gpus(amdGPU, gpu.Count, gpu.Name)
		case "habana":
			m.count(gaudi, gpu.Count)
		}
	}
	devices := lo.SumBy(t.NeuronInfo.NeuronDevices, func(d struct{ Count int64 }) int64 { return d.Count })
	if devices == 0 { // older versions of the command line
		devices = lo.SumBy(t.InferenceAcceleratorInfo.Accelerators, func(a awsAccelerator) int64 {
			return lo.Ternary(strings.EqualFold(a.Manufacturer, "aws"), a.Count, 0)
		})
	}
	m.count(neuron, devices)
}
