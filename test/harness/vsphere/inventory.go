// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"

	"github.com/karpenter-capi/karpenter-capi/test/harness/guest"
)

// The inventory that the sample for vSphere expects.
const (
	Server     = "vcenter.example.com"
	Datacenter = "dc-1"
	Template   = "ubuntu-2404-kubernetes-" + guest.Version
	network    = "workers"

	regionCategory = "k8s-region"
	zoneCategory   = "k8s-zone"
)

// Zones are the clusters of hosts. Each has a tag with its name.
var Zones = []string{"rack-a", "rack-b", "rack-c"}

// newModel returns what the simulator creates, with its own names.
func newModel() *simulator.Model {
	model := simulator.VPX()
	model.Host, model.Cluster, model.ClusterHost, model.Machine = 0, len(Zones), 1, 1
	model.Autostart = false
	return model
}

// createInventory gives what the simulator has created the names of the sample, and tags.
func (v *VCenter) createInventory(ctx context.Context) error {
	finder := find.NewFinder(v.client.Client, false)
	datacenter, err := finder.Datacenter(ctx, "DC0")
	if err != nil {
		return err
	}
	finder.SetDatacenter(datacenter)
	tagManager, err := v.createTags(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(
		tagManager.AttachTag(ctx, Datacenter, datacenter.Reference()),
		v.createTemplate(ctx, finder),
		v.renamePortgroup(ctx, finder),
	); err != nil {
		return err
	}
	for i, zone := range Zones {
		cluster, err := finder.ClusterComputeResource(ctx, fmt.Sprintf("DC0_C%d", i))
		if err != nil {
			return err
		}
		if err := errors.Join(done(ctx)(cluster.Rename(ctx, zone)), tagManager.AttachTag(ctx, zone, cluster.Reference())); err != nil {
			return err
		}
	}
	return done(ctx)(datacenter.Rename(ctx, Datacenter))
}

// createTags creates the tags by which cloud controllers know regions and zones.
func (v *VCenter) createTags(ctx context.Context) (*tags.Manager, error) {
	client := rest.NewClient(v.client.Client)
	if err := client.Login(ctx, simulator.DefaultLogin); err != nil {
		return nil, err
	}
	manager := tags.NewManager(client)
	for category, names := range map[string][]string{regionCategory: {Datacenter}, zoneCategory: Zones} {
		id, err := manager.CreateCategory(ctx, &tags.Category{Name: category, Cardinality: "SINGLE"})
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if _, err := manager.CreateTag(ctx, &tags.Tag{Name: name, CategoryID: id}); err != nil {
				return nil, err
			}
		}
	}
	return manager, nil
}

// createTemplate makes a template of one virtual machine, and removes the others.
func (v *VCenter) createTemplate(ctx context.Context, finder *find.Finder) error {
	machines, err := finder.VirtualMachineList(ctx, "*")
	if err != nil {
		return err
	}
	for _, machine := range machines[1:] {
		if err := done(ctx)(machine.Destroy(ctx)); err != nil {
			return err
		}
	}
	return errors.Join(done(ctx)(machines[0].Rename(ctx, Template)), machines[0].MarkAsTemplate(ctx))
}

func (v *VCenter) renamePortgroup(ctx context.Context, finder *find.Finder) error {
	found, err := finder.Network(ctx, "DC0_DVPG0")
	if err != nil {
		return err
	}
	return done(ctx)(object.NewCommon(v.client.Client, found.Reference()).Rename(ctx, network))
}

// done returns a function that waits until a task has succeeded.
func done(ctx context.Context) func(*object.Task, error) error {
	return func(task *object.Task, err error) error {
		if err != nil {
			return err
		}
		return task.Wait(ctx)
	}
}
