// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/harness/guest"
)

// diskGiB is the size of the disks, which the simulator does not have.
const diskGiB = 80

// Guests lists the virtual machines for what runs in them. It also does what VMware Tools do: a virtual machine that runs reports an
// address.
func (v *VCenter) Guests(ctx context.Context) ([]guest.Machine, error) {
	machines, err := v.Machines(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, machine := range machines {
		if machine.Running && !machine.hasIP {
			ip, err := addressOf(machine, fmt.Sprintf("10.0.%d.%d", i/250, i%250+1))
			if err == nil {
				err = v.setIP(ctx, machine, ip)
			}
			errs = append(errs, err)
		}
	}
	return lo.Map(machines, func(m Machine, _ int) guest.Machine { return newGuest(m) }), errors.Join(errs...)
}

// newGuest describes a virtual machine. The cloud controller manager's name of its instance type has its size and its guest
// (cloud-provider-vsphere: pkg/cloudprovider/vsphere/instances.go).
func newGuest(machine Machine) guest.Machine {
	return guest.Machine{
		ID: machine.UUID, Name: machine.Name, Running: machine.Running, ProviderID: machine.ProviderID(),
		Boot: func() ([]byte, string, error) { return boot(machine) },
		Labels: map[string]string{
			corev1.LabelArchStable:         "amd64",
			corev1.LabelInstanceTypeStable: fmt.Sprintf("vsphere-vm.cpu-%d.mem-%dgb.os-ubuntu", machine.CPUs, machine.MemoryMiB>>10),
			corev1.LabelTopologyZone:       machine.Zone, corev1.LabelTopologyRegion: Datacenter,
		},
		Resources: guest.Resources(int64(machine.CPUs), int64(machine.MemoryMiB), diskGiB),
	}
}

// boot returns what cloud-init reads.
func boot(machine Machine) (userData []byte, hostname string, err error) {
	userData, err = setting(machine, "guestinfo.userdata")
	if err != nil {
		return nil, "", err
	}
	metadata, err := setting(machine, "guestinfo.metadata")
	if err != nil {
		return nil, "", err
	}
	identity := struct {
		Hostname string `json:"local-hostname"`
	}{}
	if err := yaml.Unmarshal(metadata, &identity); err != nil {
		return nil, "", fmt.Errorf("reading its metadata: %w", err)
	}
	return userData, identity.Hostname, nil
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
