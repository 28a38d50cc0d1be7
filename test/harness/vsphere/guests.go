// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/kubeadm"
)

// Guests are what runs in virtual machines: VMware Tools, cloud-init, kubeadm and the kubelet; and the cloud controller manager, which
// gives their Nodes provider IDs and removes Nodes without a virtual machine. kwok is the kubelet of a Node that has joined.
type Guests struct {
	VCenter *VCenter
	// Workload is the cluster that they join, whose API server is at Endpoint and has Authority.
	Workload  client.Client
	Endpoint  string
	Authority []byte
	Log       logr.Logger

	// booted has the virtual machines whose Nodes have joined, by UUID, and the names of the Nodes.
	booted map[string]string
}

// interval is how often they look at the virtual machines.
const interval = 200 * time.Millisecond

// Run acts until the context ends.
func (g *Guests) Run(ctx context.Context) {
	g.booted = map[string]string{}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := g.act(ctx); err != nil && ctx.Err() == nil {
			g.Log.Info("Something that runs in a virtual machine failed", "error", err.Error())
		}
	}, interval)
}

func (g *Guests) act(ctx context.Context) error {
	machines, err := g.VCenter.Machines(ctx)
	if err != nil {
		return err
	}
	var errs []error
	exists := map[string]bool{}
	for i, machine := range machines {
		exists[machine.UUID] = true
		if !machine.Running {
			continue
		}
		if !machine.hasIP {
			ip, err := addressOf(machine, fmt.Sprintf("10.0.%d.%d", i/250, i%250+1))
			if err == nil {
				err = g.VCenter.setIP(ctx, machine, ip)
			}
			errs = append(errs, err)
		}
		if g.booted[machine.UUID] == "" {
			if err := g.boot(ctx, machine); err != nil {
				errs = append(errs, fmt.Errorf("virtual machine %s: %w", machine.Name, err))
			}
		}
	}
	for uuid, node := range g.booted {
		if !exists[uuid] {
			errs = append(errs, client.IgnoreNotFound(g.Workload.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})))
			delete(g.booted, uuid)
		}
	}
	return errors.Join(errs...)
}

// boot does what cloud-init and kubeadm do, once.
func (g *Guests) boot(ctx context.Context, machine Machine) error {
	userData, err := setting(machine, "guestinfo.userdata")
	if err != nil {
		return err
	}
	metadata, err := setting(machine, "guestinfo.metadata")
	if err != nil {
		return err
	}
	identity := struct {
		Hostname string `json:"local-hostname"`
	}{}
	if err := yaml.Unmarshal(metadata, &identity); err != nil {
		return fmt.Errorf("reading its metadata: %w", err)
	}
	join, err := kubeadm.Read(userData, identity.Hostname)
	if err != nil {
		return err
	}
	if join == nil {
		return errors.New("its user data has no `kubeadm join`")
	}
	if err := g.discover(ctx, join); err != nil {
		return err
	}
	if err := g.Workload.Create(ctx, newNode(machine, join)); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	g.booted[machine.UUID] = join.NodeName
	g.Log.Info("A Node joined", "Node", join.NodeName, "machine", machine.Name)
	return nil
}

// discover finds the API server as kubeadm does.
func (g *Guests) discover(ctx context.Context, join *kubeadm.Join) error {
	if err := join.CheckServer(g.Endpoint, g.Authority); err != nil {
		return err
	}
	name, err := join.TokenSecretName()
	if err != nil {
		return err
	}
	token := &corev1.Secret{}
	if err := g.Workload.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, token); err != nil {
		return fmt.Errorf("the bootstrap token: %w", err)
	}
	return join.CheckToken(token, time.Now())
}

// addressOf returns the address in the metadata of a virtual machine; if it has none, the one that DHCP gives it.
func addressOf(machine Machine, fromDHCP string) (string, error) {
	metadata, err := setting(machine, "guestinfo.metadata")
	if err != nil {
		return "", err
	}
	config := struct {
		Network struct {
			Ethernets map[string]struct {
				Addresses []string `json:"addresses"`
			} `json:"ethernets"`
		} `json:"network"`
	}{}
	if err := yaml.Unmarshal(metadata, &config); err != nil {
		return "", fmt.Errorf("virtual machine %s: reading its metadata: %w", machine.Name, err)
	}
	for _, card := range config.Network.Ethernets {
		for _, address := range card.Addresses {
			parsed, err := netip.ParsePrefix(address)
			return parsed.Addr().String(), err
		}
	}
	return fromDHCP, nil
}

// setting returns what the provider passes to the guest under a key.
func setting(machine Machine, key string) ([]byte, error) {
	if encoding := machine.settings[key+".encoding"]; encoding != "base64" {
		return nil, fmt.Errorf("%s has the encoding %q, not base64", key, encoding)
	}
	data, err := base64.StdEncoding.DecodeString(machine.settings[key])
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", key, err)
	}
	return data, nil
}

// kernelMemory is the part of the memory, in percent, that the kernel of the guest needs, so that its Node does not have it.
const kernelMemory = 3

// newNode returns the Node that the kubelet registers, with what the cloud controller manager adds: the instance type's name has
// size and guest (cloud-provider-vsphere: pkg/cloudprovider/vsphere/instances.go).
func newNode(machine Machine, join *kubeadm.Join) *corev1.Node {
	capacity, allocatable := join.Resources(corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(machine.CPUs), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(int64(machine.MemoryMiB)<<20*(100-kernelMemory)/100, resource.BinarySI),
		corev1.ResourceEphemeralStorage: resource.MustParse("77Gi"),
	})
	// The labels of the cloud controller replace those of the kubelet.
	labels := lo.Assign(join.Labels, map[string]string{
		corev1.LabelHostname: join.NodeName, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		corev1.LabelInstanceTypeStable: fmt.Sprintf("vsphere-vm.cpu-%d.mem-%dgb.os-ubuntu", machine.CPUs, machine.MemoryMiB>>10),
		corev1.LabelTopologyZone:       machine.Zone, corev1.LabelTopologyRegion: Datacenter,
	})
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: join.NodeName, Labels: labels, Annotations: map[string]string{controller.KwokAnnotation: controller.KwokAnnotationValue},
		},
		Spec:   corev1.NodeSpec{ProviderID: machine.ProviderID(), Taints: join.Taints},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: allocatable},
	}
}
