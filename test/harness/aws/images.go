// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"path"
	"slices"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/test/harness/guest"
)

// The images are those that Cluster API Provider AWS publishes for the version of Kubernetes in the sample: one for each architecture.
const (
	imageOwner = "819546954734"
	imageName  = "capa-ami-ubuntu-24.04-" + guest.Version + "-1795000000"
	rootDevice = "/dev/sda1"
)

// architectureOf has the architecture of each image.
var architectureOf = map[string]string{"ami-0000000000000amd4": "x86_64", "ami-0000000000000arm4": "arm64"}

// describeImages returns images by their IDs or by filters.
func (c *Cloud) describeImages(p parameters) ([]element, error) {
	var images [][]element
	ids := p.list("ImageId")
	for id, architecture := range architectureOf {
		properties := map[string]string{
			"owner-id": imageOwner, "name": imageName, "architecture": architecture, "state": "available", "virtualization-type": "hvm",
		}
		matches := lo.EveryBy(p.each("Filter"), func(filter parameters) bool {
			return lo.SomeBy(filter.list("Value"), func(pattern string) bool {
				matched, err := path.Match(pattern, properties[filter.get("Name")])
				return err == nil && matched
			})
		})
		if matches && (len(ids) == 0 || slices.Contains(ids, id)) {
			images = append(images, []element{
				text("imageId", id), text("name", imageName), text("architecture", architecture), text("creationDate", "2026-11-18T00:00:00.000Z"),
				text("rootDeviceName", rootDevice),
				items("blockDeviceMapping", []element{text("deviceName", rootDevice), with("ebs", text("volumeSize", 8))}),
			})
		}
	}
	return []element{items("imagesSet", images...)}, nil
}

func (c *Cloud) describeInstanceTypes(p parameters) ([]element, error) {
	var found [][]element
	for _, name := range p.list("InstanceType") {
		kind, exists := c.types[name]
		if !exists {
			return nil, invalid("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
		architectures := lo.Map(kind.ProcessorInfo.SupportedArchitectures, func(a string, _ int) element { return text("item", a) })
		found = append(found, []element{
			text("instanceType", name), with("processorInfo", with("supportedArchitectures", architectures...)),
			with("vCpuInfo", text("defaultVCpus", kind.VCPUInfo.DefaultVCPUs)), with("memoryInfo", text("sizeInMiB", kind.MemoryInfo.SizeInMiB)),
		})
	}
	return []element{items("instanceTypeSet", found...)}, nil
}
