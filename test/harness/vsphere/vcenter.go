// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"github.com/samber/lo"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/task"
	_ "github.com/vmware/govmomi/vapi/simulator" // for tags
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// The user that the provider logs in as.
const (
	User     = "provider@vsphere.local"
	Password = "simulated"
)

// VCenter is a simulated vCenter.
type VCenter struct {
	model  *simulator.Model
	server *simulator.Server
	client *govmomi.Client
	proxy  *proxy

	mu sync.Mutex
	// refusal is the message with which clones fail; empty if they do not.
	refusal string
}

// Start starts a vCenter on 127.0.0.1. Stop must follow.
func Start(ctx context.Context) (*VCenter, error) {
	v := &VCenter{model: newModel()}
	if err := v.model.Create(); err != nil {
		return nil, fmt.Errorf("creating the simulated vCenter: %w", err)
	}
	v.model.Service.Listen = &url.URL{Host: "127.0.0.1:0"}
	v.model.Service.TLS = new(tls.Config)
	v.model.Service.RegisterEndpoints = true
	v.server = v.model.Service.NewServer()
	v.model.Map().Handler = v.handle
	err := func() (err error) {
		if v.client, err = govmomi.NewClient(ctx, v.server.URL, true); err != nil {
			return err
		}
		if err := v.createInventory(ctx); err != nil {
			return fmt.Errorf("creating the inventory of the simulated vCenter: %w", err)
		}
		v.proxy, err = startProxy(Server, v.server.URL.Host)
		return err
	}()
	if err != nil {
		v.Stop()
		return nil, err
	}
	return v, nil
}

// Stop ends it.
func (v *VCenter) Stop() {
	if v.proxy != nil {
		v.proxy.stop()
	}
	// Close would wait for requests that wait for changes.
	_ = v.server.Listener.Close()
	v.server.CloseClientConnections()
	v.model.Remove()
}

// ProxyURL is where a proxy connects to the vCenter.
func (v *VCenter) ProxyURL() string { return v.proxy.url() }

// Refuse makes clones fail with a message of vCenter, as it does without resources; an empty one ends that.
func (v *VCenter) Refuse(message string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refusal = message
}

// Disconnect ends all connections and the provider's sessions, and accepts no new connections until Connect.
func (v *VCenter) Disconnect(ctx context.Context) error {
	v.proxy.disconnect()
	var manager mo.SessionManager
	if err := v.client.RetrieveOne(ctx, *v.client.ServiceContent.SessionManager, []string{"sessionList"}, &manager); err != nil {
		return err
	}
	sessions := lo.FilterMap(manager.SessionList, func(s types.UserSession, _ int) (string, bool) { return s.Key, s.UserName == User })
	return v.client.SessionManager.TerminateSession(ctx, sessions)
}

// Connect ends Disconnect.
func (v *VCenter) Connect() { v.proxy.connect() }

// handle is called before each request. The object that works on a request is that of the session, if it has one.
func (v *VCenter) handle(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	source, isMachine := ctx.Map.Get(method.This).(*simulator.VirtualMachine)
	if method.Name != "CloneVM_Task" || !isMachine || ctx.Session == nil {
		return nil, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.refusal == "" {
		ctx.Session.Remove(ctx, method.This)
	} else {
		ctx.Session.Put(&refusing{source, v.refusal})
	}
	return nil, nil
}

// refusing is a virtual machine that cannot be cloned.
type refusing struct {
	*simulator.VirtualMachine
	message string
}

// CloneVMTask returns a task that has failed with a message. The simulator's own tasks have only the name of a fault.
func (r *refusing) CloneVMTask(ctx *simulator.Context, _ *types.CloneVM_Task) soap.HasFault {
	task := simulator.CreateTask(r.VirtualMachine, "cloneVm", nil)
	ctx.Map.Put(task)
	task.Info.Key, task.Info.Task, task.Info.State = task.Self.Value, task.Self, types.TaskInfoStateError
	task.Info.Error = &types.LocalizedMethodFault{Fault: &types.InsufficientResourcesFault{}, LocalizedMessage: r.message}
	return &methods.CloneVM_TaskBody{Res: &types.CloneVM_TaskResponse{Returnval: task.Self}}
}

// Machine is a virtual machine.
type Machine struct {
	Name string
	// UUID is the one of its BIOS.
	UUID      string
	CPUs      int32
	MemoryMiB int32
	Zone      string
	Running   bool

	reference types.ManagedObjectReference
	// settings has what the provider passes to the guest.
	settings map[string]string
	hasIP    bool
}

// ProviderID returns the provider ID of its Node.
func (m Machine) ProviderID() string { return "vsphere://" + m.UUID }

// Machines lists all virtual machines but the template.
func (v *VCenter) Machines(ctx context.Context) ([]Machine, error) {
	container, err := view.NewManager(v.client.Client).CreateContainerView(ctx, v.client.ServiceContent.RootFolder, []string{"VirtualMachine", "ClusterComputeResource"}, true)
	if err != nil {
		return nil, err
	}
	var found []mo.VirtualMachine
	var clusters []mo.ClusterComputeResource
	err = errors.Join(
		container.Retrieve(ctx, []string{"VirtualMachine"}, []string{"name", "config", "runtime.powerState", "resourcePool", "guest.net"}, &found),
		container.Retrieve(ctx, []string{"ClusterComputeResource"}, []string{"name", "resourcePool"}, &clusters),
		container.Destroy(ctx),
	)
	if err != nil {
		return nil, err
	}
	zones := map[types.ManagedObjectReference]string{}
	for _, cluster := range clusters {
		zones[*cluster.ResourcePool] = cluster.Name
	}
	var machines []Machine
	for _, vm := range found {
		if vm.Config == nil || vm.Config.Template {
			continue
		}
		machines = append(machines, newMachine(vm, zones))
	}
	return machines, nil
}

func newMachine(vm mo.VirtualMachine, zones map[types.ManagedObjectReference]string) Machine {
	m := Machine{
		Name: vm.Name, UUID: vm.Config.Uuid, CPUs: vm.Config.Hardware.NumCPU, MemoryMiB: vm.Config.Hardware.MemoryMB,
		Running:   vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn,
		reference: vm.Self, settings: map[string]string{},
	}
	// The simulator leaves a clone on the host of its template, so the host does not tell its zone.
	if vm.ResourcePool != nil {
		m.Zone = zones[*vm.ResourcePool]
	}
	for _, option := range vm.Config.ExtraConfig {
		if value, isText := option.GetOptionValue().Value.(string); isText {
			m.settings[option.GetOptionValue().Key] = value
		}
	}
	m.hasIP = vm.Guest != nil && slices.ContainsFunc(vm.Guest.Net, func(nic types.GuestNicInfo) bool { return len(nic.IpAddress) > 0 })
	return m
}

// Destroy removes a virtual machine without the provider, which starts one that it finds off.
func (v *VCenter) Destroy(ctx context.Context, machine Machine) error {
	vm := object.NewVirtualMachine(v.client.Client, machine.reference)
	for {
		failed := task.Error{}
		err := done(ctx)(vm.Destroy(ctx))
		if !errors.As(err, &failed) {
			return err
		}
		if _, running := failed.Fault().(*types.InvalidPowerState); !running {
			return err
		}
		if err := done(ctx)(vm.PowerOff(ctx)); err != nil {
			return err
		}
	}
}

// setIP gives the first network card of a virtual machine an address, as VMware Tools report it.
func (v *VCenter) setIP(ctx context.Context, machine Machine, ip string) error {
	vm := object.NewVirtualMachine(v.client.Client, machine.reference)
	return done(ctx)(vm.Reconfigure(ctx, types.VirtualMachineConfigSpec{
		ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "SET.guest.ipAddress", Value: ip}},
	}))
}
