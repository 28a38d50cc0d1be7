// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
)

// group is an Auto Scaling group in the subnets of one zone.
type group struct {
	name, template, subnets string
	minimum, maximum        int
	desired                 int
	suspended               []string
}

// autoScalingActions are those of Auto Scaling.
var autoScalingActions = map[string]action{
	"CreateAutoScalingGroup":    (*Cloud).createGroup,
	"UpdateAutoScalingGroup":    (*Cloud).updateGroup,
	"DeleteAutoScalingGroup":    (*Cloud).deleteGroup,
	"DescribeAutoScalingGroups": (*Cloud).describeGroups,
	"SuspendProcesses":          (*Cloud).suspendProcesses,
	"ResumeProcesses":           (*Cloud).resumeProcesses,
	"DescribeLifecycleHooks":    func(*Cloud, parameters) ([]element, error) { return []element{members("LifecycleHooks")}, nil },
	"DescribeInstanceRefreshes": func(*Cloud, parameters) ([]element, error) { return []element{members("InstanceRefreshes")}, nil },
	"CreateOrUpdateTags":        func(*Cloud, parameters) ([]element, error) { return nil, nil },
}

func (c *Cloud) createGroup(p parameters) ([]element, error) {
	name := p.get("AutoScalingGroupName")
	if c.groups[name] != nil {
		return nil, invalid("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", name)
	}
	g := &group{name: name}
	if err := c.set(g, p); err != nil {
		return nil, err
	}
	c.groups[name] = g
	c.settleAll()
	return nil, nil
}

func (c *Cloud) updateGroup(p parameters) ([]element, error) {
	g := c.groups[p.get("AutoScalingGroupName")]
	if g == nil {
		return nil, invalid("ValidationError", "AutoScalingGroup name not found - AutoScalingGroup %s not found", p.get("AutoScalingGroupName"))
	}
	if err := c.set(g, p); err != nil {
		return nil, err
	}
	c.settleAll()
	return nil, nil
}

// set sets what a request has.
func (c *Cloud) set(g *group, p parameters) error {
	for name, field := range map[string]*int{"MinSize": &g.minimum, "MaxSize": &g.maximum, "DesiredCapacity": &g.desired} {
		if text := p.get(name); text != "" {
			value, err := strconv.Atoi(text)
			if err != nil {
				return invalid("ValidationError", "%s is %q", name, text)
			}
			*field = value
		}
	}
	if g.desired < g.minimum || g.desired > g.maximum {
		return invalid("ValidationError", "Desired capacity:%d must be between the specified min size:%d and max size:%d", g.desired, g.minimum, g.maximum)
	}
	g.template = p.get("LaunchTemplate.LaunchTemplateId")
	if c.templates[g.template] == nil {
		return invalid("ValidationError", "You must use a valid fully-formed launch template. The specified launch template does not exist.")
	}
	g.subnets = strings.ReplaceAll(p.get("VPCZoneIdentifier"), " ", "")
	for subnet := range strings.SplitSeq(g.subnets, ",") {
		if zoneOfSubnet[subnet] == "" {
			return invalid("ValidationError", "The subnet ID '%s' does not exist", subnet)
		}
	}
	return nil
}

func (c *Cloud) deleteGroup(p parameters) ([]element, error) {
	g := c.groups[p.get("AutoScalingGroupName")]
	if g == nil {
		return nil, invalid("ValidationError", "AutoScalingGroup name not found")
	}
	for _, i := range c.of(g) {
		i.state = terminated
	}
	delete(c.groups, g.name)
	return nil, nil
}

// of returns the instances of a group, the oldest first.
func (c *Cloud) of(g *group) []*instance {
	return lo.Filter(c.instances, func(i *instance, _ int) bool { return i.group == g && i.alive() })
}

// settleAll does what Auto Scaling does by itself within minutes: each group gets as many instances as it should have. Those in excess
// are the oldest ones. If AWS refuses an instance, it tries again later.
func (c *Cloud) settleAll() {
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[name]
		has := c.of(g)
		for _, i := range has[:max(0, len(has)-g.desired)] {
			i.state = terminated
		}
		for range g.desired - len(has) {
			l := c.templates[g.template].latest().launch
			l.subnet, _, _ = strings.Cut(g.subnets, ",")
			i, err := c.run(l)
			if err != nil {
				break
			}
			i.group = g
			i.tags["aws:autoscaling:groupName"] = g.name
		}
	}
}

func (c *Cloud) describeGroups(p parameters) ([]element, error) {
	names := p.list("AutoScalingGroupNames.member")
	var found [][]element
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		if len(names) == 0 || slices.Contains(names, name) {
			found = append(found, c.describeGroup(c.groups[name]))
		}
	}
	return []element{members("AutoScalingGroups", found...)}, nil
}

func (c *Cloud) describeGroup(g *group) []element {
	instances := lo.Map(c.of(g), func(i *instance, _ int) []element {
		return []element{
			text("InstanceId", i.ID), text("AvailabilityZone", i.Zone), text("LifecycleState", "InService"), text("HealthStatus", "Healthy"),
			text("ProtectedFromScaleIn", false),
		}
	})
	suspended := lo.Map(g.suspended, func(process string, _ int) []element { return []element{text("ProcessName", process)} })
	return []element{
		text("AutoScalingGroupName", g.name), text("AutoScalingGroupARN", "arn:aws:autoscaling:"+Region+":000000000000:autoScalingGroup:"+g.name),
		text("MinSize", g.minimum), text("MaxSize", g.maximum), text("DesiredCapacity", g.desired), text("VPCZoneIdentifier", g.subnets),
		text("CapacityRebalance", false), members("Instances", instances...), members("SuspendedProcesses", suspended...),
	}
}

func (c *Cloud) suspendProcesses(p parameters) ([]element, error) {
	if g := c.groups[p.get("AutoScalingGroupName")]; g != nil {
		g.suspended = lo.Union(g.suspended, p.list("ScalingProcesses.member"))
	}
	return nil, nil
}

func (c *Cloud) resumeProcesses(p parameters) ([]element, error) {
	if g := c.groups[p.get("AutoScalingGroupName")]; g != nil {
		g.suspended = lo.Without(g.suspended, p.list("ScalingProcesses.member")...)
	}
	return nil, nil
}
