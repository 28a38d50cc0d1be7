// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"slices"
	"strings"

	"github.com/samber/lo"
)

// Instance is an instance of EC2.
type Instance struct {
	ID string
	Pool
	Hostname string
	DiskGiB  int64
}

// ProviderID is the provider ID of its Node.
func (i Instance) ProviderID() string { return "aws:///" + i.Zone + "/" + i.ID }

type instance struct {
	Instance
	launch  launch
	state   string
	address string
	tags    map[string]string
	// group is its Auto Scaling group, if it has one, and secret the user data that it has read from Secrets Manager.
	group  *group
	secret []byte
}

// The states of instances, with AWS's codes of them.
const (
	pending    = "pending"
	running    = "running"
	terminated = "terminated"
)

var stateCodes = map[string]int{pending: 0, running: 16, terminated: 48}

func (i *instance) alive() bool { return i.state != terminated }

// ec2Actions are those of EC2.
var ec2Actions = map[string]action{
	"RunInstances":                   (*Cloud).runInstances,
	"DescribeInstances":              (*Cloud).describeInstances,
	"TerminateInstances":             (*Cloud).terminateInstances,
	"DescribeNetworkInterfaces":      (*Cloud).describeNetworkInterfaces,
	"CreateTags":                     (*Cloud).createTags,
	"DescribeInstanceTypes":          (*Cloud).describeInstanceTypes,
	"DescribeImages":                 (*Cloud).describeImages,
	"CreateLaunchTemplate":           (*Cloud).createLaunchTemplate,
	"CreateLaunchTemplateVersion":    (*Cloud).createLaunchTemplateVersion,
	"DescribeLaunchTemplateVersions": (*Cloud).describeLaunchTemplateVersions,
	"DeleteLaunchTemplateVersions":   (*Cloud).deleteLaunchTemplateVersions,
	"DeleteLaunchTemplate":           (*Cloud).deleteLaunchTemplate,
}

func (c *Cloud) runInstances(p parameters) ([]element, error) {
	l, err := newLaunch(p)
	if err != nil {
		return nil, err
	}
	i, err := c.run(l)
	if err != nil {
		return nil, err
	}
	return []element{text("reservationId", "r-"+i.ID), items("instancesSet", i.describe())}, nil
}

// describe returns what AWS reports of an instance.
func (i *instance) describe() []element {
	content := []element{
		text("instanceId", i.ID), text("instanceType", i.InstanceType), text("imageId", i.launch.imageID), text("subnetId", i.launch.subnet),
		with("instanceState", text("code", stateCodes[i.state]), text("name", i.state)),
		with("placement", text("availabilityZone", i.Zone)),
		text("privateIpAddress", i.address), text("privateDnsName", i.Hostname),
		items("networkInterfaceSet", []element{
			text("networkInterfaceId", i.networkInterface()), text("privateIpAddress", i.address), text("privateDnsName", i.Hostname),
		}),
		items("groupSet", groupIDs(i.launch.securityGroups)...),
		with("iamInstanceProfile", text("arn", "arn:aws:iam::000000000000:instance-profile/"+i.launch.profile)),
		i.launch.metadataOptions(), tagSet(i.tags),
	}
	if i.launch.keyName != "" {
		content = append(content, text("keyName", i.launch.keyName))
	}
	if i.Spot {
		content = append(content, text("instanceLifecycle", "spot"))
	}
	return content
}

func groupIDs(groups []string) [][]element {
	return lo.Map(groups, func(id string, _ int) []element { return []element{text("groupId", id)} })
}

func (i *instance) networkInterface() string { return "eni-" + strings.TrimPrefix(i.ID, "i-") }

// describeInstances returns instances by their IDs or by filters. By then, what was launched runs.
func (c *Cloud) describeInstances(p parameters) ([]element, error) {
	ids := p.list("InstanceId")
	for _, id := range ids {
		if !lo.ContainsBy(c.instances, func(i *instance) bool { return i.ID == id }) {
			return nil, invalid("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
	}
	var reservations [][]element
	for _, i := range c.instances {
		matches, err := i.matches(p.each("Filter"))
		if err != nil {
			return nil, err
		}
		if !matches || (len(ids) > 0 && !slices.Contains(ids, i.ID)) {
			continue
		}
		if i.state == pending {
			i.state = running
		}
		reservations = append(reservations, []element{text("reservationId", "r-"+i.ID), items("instancesSet", i.describe())})
	}
	return []element{items("reservationSet", reservations...)}, nil
}

func (i *instance) matches(filters []parameters) (bool, error) {
	for _, filter := range filters {
		has := i.state
		if key, isTag := strings.CutPrefix(filter.get("Name"), "tag:"); isTag {
			has = i.tags[key]
		} else if filter.get("Name") != "instance-state-name" {
			return false, invalid("InvalidParameterValue", "The filter '%s' is invalid", filter.get("Name"))
		}
		if !slices.Contains(filter.list("Value"), has) {
			return false, nil
		}
	}
	return true, nil
}

func (c *Cloud) terminateInstances(p parameters) ([]element, error) {
	for _, i := range c.instances {
		if slices.Contains(p.list("InstanceId"), i.ID) {
			i.state = terminated
		}
	}
	c.settleAll()
	return nil, nil
}

// describeNetworkInterfaces returns that of an instance.
func (c *Cloud) describeNetworkInterfaces(p parameters) ([]element, error) {
	filter := p.within("Filter.1")
	if filter.get("Name") != "attachment.instance-id" {
		return nil, invalid("InvalidParameterValue", "The filter '%s' is invalid", filter.get("Name"))
	}
	found := lo.FilterMap(c.instances, func(i *instance, _ int) ([]element, bool) {
		return []element{
			text("networkInterfaceId", i.networkInterface()), items("groupSet", groupIDs(i.launch.securityGroups)...), tagSet(i.tags),
		}, slices.Contains(filter.list("Value"), i.ID)
	})
	return []element{items("networkInterfaceSet", found...)}, nil
}

// createTags gives instances tags. Other resources need none here.
func (c *Cloud) createTags(p parameters) ([]element, error) {
	for _, i := range c.instances {
		if slices.Contains(p.list("ResourceId"), i.ID) {
			i.tags = lo.Assign(i.tags, p.tags("Tag"))
		}
	}
	return []element{text("return", true)}, nil
}
