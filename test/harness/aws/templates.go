// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/samber/lo"
)

// launchTemplate is a launch template. Its first version is the default one.
type launchTemplate struct {
	id, name string
	versions []templateVersion
}

type templateVersion struct {
	number int
	launch launch
}

func (t *launchTemplate) latest() templateVersion { return t.versions[len(t.versions)-1] }

func (c *Cloud) createLaunchTemplate(p parameters) ([]element, error) {
	template := &launchTemplate{id: c.next("lt"), name: p.get("LaunchTemplateName")}
	if err := template.add(p.within("LaunchTemplateData")); err != nil {
		return nil, err
	}
	c.templates[template.id] = template
	return []element{with("launchTemplate", text("launchTemplateId", template.id), text("launchTemplateName", template.name))}, nil
}

func (c *Cloud) createLaunchTemplateVersion(p parameters) ([]element, error) {
	template, err := c.template(p)
	if err != nil {
		return nil, err
	}
	return nil, template.add(p.within("LaunchTemplateData"))
}

// add adds a version.
func (t *launchTemplate) add(p parameters) error {
	l, err := newLaunch(p)
	if err != nil {
		return err
	}
	number := 1
	if len(t.versions) > 0 {
		number = t.latest().number + 1
	}
	t.versions = append(t.versions, templateVersion{number: number, launch: l})
	return nil
}

// templateData returns what AWS reports of a version.
func templateData(l launch) []element {
	data := []element{
		text("imageId", l.imageID), text("instanceType", l.instanceType), text("userData", l.userData),
		with("iamInstanceProfile", text("name", l.profile)),
		with("securityGroupIdSet", lo.Map(l.securityGroups, func(id string, _ int) element { return text("item", id) })...),
		items("tagSpecificationSet", []element{text("resourceType", "instance"), tagSet(l.tags)}),
	}
	if len(l.metadata) > 0 {
		data = append(data, l.metadataOptions())
	}
	if l.keyName != "" {
		data = append(data, text("keyName", l.keyName))
	}
	if l.spot {
		data = append(data, with("instanceMarketOptions", text("marketType", "spot")))
	}
	return data
}

// template returns the one of a request.
func (c *Cloud) template(p parameters) (*launchTemplate, error) {
	id, name := p.get("LaunchTemplateId"), p.get("LaunchTemplateName")
	for _, template := range c.templates {
		if template.id == id || (id == "" && template.name == name) {
			return template, nil
		}
	}
	if id != "" {
		return nil, invalid("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
	}
	return nil, invalid("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", name)
}

// describeLaunchTemplateVersions returns the latest version or, without a version in the request, the newest ones.
func (c *Cloud) describeLaunchTemplateVersions(p parameters) ([]element, error) {
	template, err := c.template(p)
	if err != nil {
		return nil, err
	}
	versions := template.versions
	if slices.Equal(p.list("LaunchTemplateVersion"), []string{"$Latest"}) {
		versions = versions[len(versions)-1:]
	}
	if limit, err := strconv.Atoi(cmp.Or(p.get("MaxResults"), "200")); err == nil && len(versions) > limit {
		versions = versions[:limit]
	}
	return []element{items("launchTemplateVersionSet", lo.Map(versions, func(v templateVersion, _ int) []element {
		return []element{
			text("launchTemplateId", template.id), text("launchTemplateName", template.name), text("versionNumber", v.number),
			text("defaultVersion", v.number == template.versions[0].number), with("launchTemplateData", templateData(v.launch)...),
		}
	})...)}, nil
}

func (c *Cloud) deleteLaunchTemplateVersions(p parameters) ([]element, error) {
	template, err := c.template(p)
	if err != nil {
		return nil, err
	}
	template.versions = lo.Reject(template.versions, func(v templateVersion, _ int) bool {
		return slices.Contains(p.list("LaunchTemplateVersion"), strconv.Itoa(v.number))
	})
	return nil, nil
}

func (c *Cloud) deleteLaunchTemplate(p parameters) ([]element, error) {
	template, err := c.template(p)
	if err != nil {
		return nil, err
	}
	delete(c.templates, template.id)
	return nil, nil
}
