// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// openstackFormat is OpenStack Nova. The allowance is that of the clouds.
var openstackFormat = Format{
	Name: "openstack",
	Help: `Save this:
  openstack flavor list --long -f json
OpenStack has no prices: set --price-cpu and --price-memory. --zone names the availability zones.`,
	Allowance: decimal.RequireFromString("7.5"),
	read:      readOpenStack,
}

// flavor is a value of openstack flavor list.
type flavor struct {
	Name string `json:"Name"`
	// RAM is in MiB, and Disk and Ephemeral in GiB.
	RAM       *int64 `json:"RAM"`
	Disk      int64  `json:"Disk"`
	Ephemeral int64  `json:"Ephemeral"`
	VCPUs     int64  `json:"VCPUs"`
	// Properties are an object, and a text in older versions.
	Properties json.RawMessage `json:"Properties"`
}

func readOpenStack(files []File, options *Options) (*inventory, error) {
	if !options.computesPrices() {
		return nil, errors.New("OpenStack has no prices: set --price-cpu, --price-memory or --price-gpu, for example --price-cpu 0.02 --price-memory 0.003")
	}
	in := &inventory{skipped: skips{}}
	for _, file := range files {
		top, err := open(file)
		if err != nil {
			return nil, err
		}
		if !top.document.isArray {
			return nil, fmt.Errorf("%s: expected an array of flavors, found an object: save what openstack flavor list --long -f json prints", file.Name)
		}
		err = top.each(func(value element) error {
			f := flavor{}
			if err := value.read(&f); err != nil {
				return err
			}
			if f.Name == "" || f.RAM == nil {
				return value.errorf("expected a flavor with Name, RAM, Disk, VCPUs and Properties: save what openstack flavor list --long -f json prints")
			}
			m, err := f.machine(fmt.Sprintf("%s (%s)", value, f.Name), options)
			if err == nil {
				in.machines = append(in.machines, *m)
			}
			return err
		})
		if err == nil {
			err = top.close()
		}
		if err != nil {
			return nil, err
		}
	}
	return in, nil
}

// machine returns a flavor in common terms.
func (f *flavor) machine(where string, options *Options) (*machine, error) {
	m := newMachine(where, f.Name)
	m.cpu = *resource.NewQuantity(f.VCPUs, resource.DecimalSI)
	m.memory = times(*f.RAM, mebibyte)
	if f.Disk > 0 {
		// A file system has about 5 percent less than its disk.
		m.capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(times(times(f.Disk, 95)/100, gibibyte), resource.BinarySI)
	}
	m.label(v1alpha1.InstanceLocalStorageLabel, strconv.FormatInt(f.Ephemeral, 10))
	family, size, found := strings.Cut(f.Name, ".")
	if found {
		m.label(v1alpha1.InstanceFamilyLabel, family)
		m.label(v1alpha1.InstanceSizeLabel, size)
	}
	properties, err := f.properties()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	m.architecture = karpv1.ArchitectureAmd64
	if lo.CoalesceOrEmpty(properties["hw_architecture"], properties["hw:architecture"], properties["capabilities:cpu_arch"]) == "aarch64" {
		m.architecture = karpv1.ArchitectureArm64
	}
	if err := f.gpus(&m, properties); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	zones := options.Zones
	if len(zones) == 0 {
		zones = []string{""}
	}
	for _, zone := range zones {
		m.offers = append(m.offers, offer{zone: zone, capacityType: karpv1.CapacityTypeOnDemand})
	}
	m.spot = true
	return &m, nil
}

// flavorProperty is a property in a text such as hw:cpu_policy='dedicated', resources:VGPU='1'.
var flavorProperty = regexp.MustCompile(`\s*([^=,\s]+)='([^']*)'\s*(?:,|$)`)

// properties returns the properties of a flavor.
func (f *flavor) properties() (map[string]string, error) {
	var text string
	if json.Unmarshal(f.Properties, &text) == nil {
		found := map[string]string{}
		for _, match := range flavorProperty.FindAllStringSubmatch(text, -1) {
			found[match[1]] = match[2]
		}
		if rest := flavorProperty.ReplaceAllString(text, ""); strings.TrimSpace(rest) != "" {
			return nil, fmt.Errorf("field Properties: expected properties such as hw:cpu_policy='dedicated', found %q", text)
		}
		return found, nil
	}
	found := map[string]string{}
	if len(f.Properties) > 0 {
		if err := json.Unmarshal(f.Properties, &found); err != nil {
			return nil, fmt.Errorf("field Properties: expected an object whose values are strings, found %s", f.Properties)
		}
	}
	return found, nil
}

// gpuModels are the parts of names of PCI aliases by which a GPU is known.
var gpuModels = regexp.MustCompile(`(?i)gpu|nvidia|tesla|geforce|rtx|radeon|instinct|^(?:a|h|l|t|v|p|b)[0-9]+s?(?:-|$)|(?:^|[-_])mi[0-9]+`)

// amdModels are those of AMD, and vendors the prefixes that are no part of a model.
var (
	amdModels = regexp.MustCompile(`(?i)amd|radeon|instinct|(?:^|[-_])mi[0-9]`)
	vendors   = regexp.MustCompile(`(?i)^(?:nvidia|amd|gpu)[-_]`)
)

// gpus sets the GPUs that properties request: virtual ones, or PCI devices whose alias has a name
// such as nvidia-t4:1.
func (f *flavor) gpus(m *machine, properties map[string]string) error {
	number := func(key, text string) (int64, error) {
		count, err := strconv.ParseInt(text, 10, 64)
		if err != nil || count < 0 {
			return 0, fmt.Errorf("property %s: expected a number of devices, found %q", key, text)
		}
		return count, nil
	}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if key == "resources:VGPU" {
			count, err := number(key, properties[key])
			if err != nil {
				return err
			}
			m.gpus(nvidiaGPU, count, "vgpu")
		}
		if key != "pci_passthrough:alias" {
			continue
		}
		for device := range strings.SplitSeq(properties[key], ",") {
			alias, text, _ := strings.Cut(strings.TrimSpace(device), ":")
			count, err := number(key, text)
			if err != nil {
				return err
			}
			if gpuModels.MatchString(alias) {
				m.gpus(lo.Ternary(amdModels.MatchString(alias), amdGPU, nvidiaGPU), count, vendors.ReplaceAllString(alias, ""))
			}
		}
	}
	return nil
}
