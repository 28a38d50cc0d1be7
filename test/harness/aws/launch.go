// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
)

// launch is what a request or a launch template says about instances.
type launch struct {
	imageID, instanceType, keyName, profile, userData string
	subnet                                            string
	spot                                              bool
	diskGiB                                           int64
	securityGroups                                    []string
	tags                                              map[string]string
	// metadata are the options of the metadata service, by their names in requests.
	metadata map[string]string
}

// newLaunch reads the parameters that requests for instances and launch templates have in common.
func newLaunch(p parameters) (launch, error) {
	l := launch{
		imageID: p.get("ImageId"), instanceType: p.get("InstanceType"), keyName: p.get("KeyName"),
		profile: p.get("IamInstanceProfile.Name"), userData: p.get("UserData"), subnet: p.get("NetworkInterface.1.SubnetId"),
		spot:           p.get("InstanceMarketOptions.MarketType") == "spot",
		securityGroups: append(p.list("SecurityGroupId"), p.list("NetworkInterface.1.SecurityGroupId")...),
		metadata:       lo.MapValues(p.within("MetadataOptions"), func(values []string, _ string) string { return values[0] }),
	}
	for _, specification := range p.each("TagSpecification") {
		if specification.get("ResourceType") == "instance" {
			l.tags = specification.tags("Tag")
		}
	}
	for _, mapping := range p.each("BlockDeviceMapping") {
		if mapping.get("DeviceName") == rootDevice {
			size, err := strconv.ParseInt(mapping.get("Ebs.VolumeSize"), 10, 64)
			if err != nil {
				return l, invalid("InvalidParameterValue", "the volume size %q", mapping.get("Ebs.VolumeSize"))
			}
			l.diskGiB = size
		}
	}
	return l, nil
}

// metadataOptions returns the options of the metadata service in an answer, with AWS's defaults.
func (l launch) metadataOptions() element {
	return with("metadataOptions",
		text("state", "applied"),
		text("httpEndpoint", cmp.Or(l.metadata["HttpEndpoint"], "enabled")),
		text("httpTokens", cmp.Or(l.metadata["HttpTokens"], "optional")),
		text("httpPutResponseHopLimit", cmp.Or(l.metadata["HttpPutResponseHopLimit"], "1")),
		text("httpProtocolIpv6", cmp.Or(l.metadata["HttpProtocolIpv6"], "disabled")),
		text("instanceMetadataTags", cmp.Or(l.metadata["InstanceMetadataTags"], "disabled")),
	)
}

// run launches an instance.
func (c *Cloud) run(l launch) (*instance, error) {
	pool := Pool{InstanceType: l.instanceType, Zone: zoneOfSubnet[l.subnet], Spot: l.spot}
	kind, exists := c.types[l.instanceType]
	switch {
	case !exists:
		return nil, invalid("InvalidParameterValue", "Invalid value '%s' for InstanceType.", l.instanceType)
	case pool.Zone == "":
		return nil, invalid("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", l.subnet)
	case !slices.Contains(kind.ProcessorInfo.SupportedArchitectures, architectureOf[l.imageID]):
		return nil, invalid("InvalidParameterValue", "The architecture of the specified instance type does not match the architecture '%s' of the specified AMI.", architectureOf[l.imageID])
	case c.denied != "":
		return nil, &failure{http.StatusForbidden, "UnauthorizedOperation", c.denied}
	case slices.Contains(c.exhausted, pool):
		return nil, &failure{http.StatusInternalServerError, "InsufficientInstanceCapacity", NoCapacity(pool)}
	}
	address := fmt.Sprintf("10.0.%d.%d", c.serial/250, c.serial%250+1)
	i := &instance{
		Instance: Instance{
			ID: c.next("i"), Pool: pool, Hostname: "ip-" + strings.ReplaceAll(address, ".", "-") + ".ec2.internal", DiskGiB: l.diskGiB,
		},
		launch: l, state: pending, address: address, tags: lo.Assign(l.tags),
	}
	c.instances = append(c.instances, i)
	return i, nil
}

// NoCapacity is AWS's message if a pool has no capacity.
func NoCapacity(pool Pool) string {
	if pool.Spot {
		return "There is no Spot capacity available that matches your request."
	}
	return fmt.Sprintf("We currently do not have sufficient %[1]s capacity in the Availability Zone you requested (%[2]s). Our system will be "+
		"working on provisioning additional capacity. You can currently get %[1]s capacity by not specifying an Availability Zone in your "+
		"request or choosing %[3]s.", pool.InstanceType, pool.Zone, strings.Join(lo.Without(Zones, pool.Zone), ", "))
}
