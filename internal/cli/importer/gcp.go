// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// gcpFormat is Google Compute Engine. The allowance is that of Karpenter's providers for AWS and
// Azure, because the kernel needs about the same everywhere.
var gcpFormat = Format{
	Name: "gcp",
	Help: `Save this:
  gcloud compute machine-types list --zones ZONE,ZONE,ZONE --format json
and write a CSV file with prices. Its columns are machine-type, price and, if they differ, capacity-type, zone and currency:
  machine-type,capacity-type,price
  n2-standard-4,on-demand,0.194236
  n2-standard-4,spot,0.0472`,
	Allowance: decimal.RequireFromString("7.5"),
	read:      readGCP,
}

// gcpInput is what the files have.
type gcpInput struct {
	*inventory
	types []gcpType
	// prices are those of each machine type, capacity type and zone. The zone is empty for
	// prices of the region.
	prices map[[3]string]decimal.Decimal
}

// gcpType is a value of gcloud compute machine-types list: a machine type in one zone.
type gcpType struct {
	where            string
	Name             string                  `json:"name"`
	Kind             string                  `json:"kind"`
	Zone             string                  `json:"zone"`
	GuestCPUs        int64                   `json:"guestCpus"`
	MemoryMB         int64                   `json:"memoryMb"`
	Architecture     string                  `json:"architecture"`
	Deprecated       *struct{ State string } `json:"deprecated"`
	BundledLocalSSDs struct {
		PartitionCount int64 `json:"partitionCount"`
	} `json:"bundledLocalSsds"`
	Accelerators []struct {
		Type  string `json:"guestAcceleratorType"`
		Count int64  `json:"guestAcceleratorCount"`
	} `json:"accelerators"`
}

func readGCP(files []File, options *Options) (*inventory, error) {
	in := &gcpInput{inventory: &inventory{skipped: skips{}}, prices: map[[3]string]decimal.Decimal{}}
	for _, file := range files {
		first, err := firstByte(file)
		if err != nil {
			return nil, err
		}
		if first == '[' || first == '{' {
			err = in.readTypes(file)
		} else {
			err = in.readPrices(file)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case len(in.types) == 0:
		return nil, errors.New("the files have no machine types: add what this prints to --from: gcloud compute machine-types list --zones ZONE,ZONE,ZONE --format json")
	case len(in.prices) == 0 && !options.computesPrices():
		return nil, errors.New("the files have no prices: add a CSV file with the columns machine-type, capacity-type and price to --from, or set --price-cpu and --price-memory")
	}
	if err := in.findRegion(options); err != nil {
		return nil, err
	}
	return in.inventory, in.join(options)
}

func (in *gcpInput) readTypes(file File) error {
	top, err := open(file)
	if err != nil {
		return err
	}
	if !top.document.isArray {
		return fmt.Errorf("%s: expected an array of machine types, found an object: save what gcloud compute machine-types list --format json prints", file.Name)
	}
	err = top.each(func(value element) error {
		t := gcpType{}
		if err := value.read(&t); err != nil {
			return err
		}
		if t.Kind != "compute#machineType" || t.Name == "" || t.Zone == "" {
			return value.errorf("expected kind compute#machineType with name and zone, found %q, %q and %q", t.Kind, t.Name, t.Zone)
		}
		t.Zone = path.Base(t.Zone) // or its URL
		t.where = fmt.Sprintf("%s (%s)", value, t.Name)
		in.types = append(in.types, t)
		return nil
	})
	if err != nil {
		return err
	}
	return top.close()
}

func (in *gcpInput) readPrices(file File) error {
	return readTable(file, []string{"machine-type", "price"}, []string{"capacity-type", "zone", "currency"}, func(r row) error {
		capacityType, err := in.readPriced(r.where, r)
		if err != nil {
			return err
		}
		price, err := parsePrice(r.where, r.values["price"])
		if err != nil {
			return err
		}
		key := [3]string{r.values["machine-type"], capacityType, r.values["zone"]}
		if other, twice := in.prices[key]; twice {
			return fmt.Errorf("%s: a second price of %s for %s: %s and %s, expected one", r.where, key[0], capacityType, other, price)
		}
		in.prices[key] = price
		return nil
	})
}

// findRegion sets the region of the chosen zones, such as us-central1 for us-central1-a.
func (in *gcpInput) findRegion(options *Options) error {
	var regions []string
	for _, t := range in.types {
		if at := strings.LastIndex(t.Zone, "-"); at > 0 && matches(options.Zones, t.Zone) && !slices.Contains(regions, t.Zone[:at]) {
			regions = append(regions, t.Zone[:at])
		}
	}
	if len(regions) != 1 {
		slices.Sort(regions)
		return fmt.Errorf("expected zones of one region, such as us-central1-a, found those of %d: %s: choose zones with --zone 'REGION-*'", len(regions), strings.Join(regions, ", "))
	}
	in.region = regions[0]
	return nil
}

// join joins the entries of the zones to machines.
func (in *gcpInput) join(options *Options) error {
	at := map[string]int{}
	for i := range in.types {
		t := &in.types[i]
		if !matches(options.Zones, t.Zone) {
			continue
		}
		if t.Deprecated != nil {
			in.skipped.add("that are deprecated", t.Name)
			continue
		}
		m, err := t.machine()
		if err != nil {
			return err
		}
		first, known := at[t.Name]
		if !known {
			first = len(in.machines)
			at[t.Name] = first
			in.machines = append(in.machines, *m)
		}
		joined := &in.machines[first]
		if joined.cpu.Cmp(m.cpu) != 0 || joined.memory != m.memory || joined.architecture != m.architecture {
			return fmt.Errorf("%s: it has other CPUs, memory or architecture than %s: expected the same in all zones", t.where, joined.where)
		}
		if joined.offered(t.Zone, karpv1.CapacityTypeOnDemand) {
			return fmt.Errorf("%s: zone %s is listed twice, first at %s: expected each zone once", t.where, t.Zone, joined.where)
		}
		in.addOffers(joined, t.Zone, options)
	}
	return nil
}

func (in *gcpInput) addOffers(m *machine, zone string, options *Options) {
	for _, capacityType := range []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot} {
		price, priced := in.prices[[3]string{m.name, capacityType, zone}]
		if !priced {
			price, priced = in.prices[[3]string{m.name, capacityType, ""}]
		}
		o := offer{zone: zone, capacityType: capacityType}
		switch {
		case priced:
			o.price = &price
		case capacityType == karpv1.CapacityTypeSpot:
			return
		case !options.computesPrices():
			return // build reports machines without offers
		}
		m.offers = append(m.offers, o)
	}
}

var gcpArchitectures = map[string]string{"": karpv1.ArchitectureAmd64, "X86_64": karpv1.ArchitectureAmd64, "ARM64": karpv1.ArchitectureArm64}

// gcpName is the name of a machine type: its family and size. Example: n2d-standard-4.
var gcpName = regexp.MustCompile(`^([a-z]+)([0-9]+)([a-z]*)-(.+)$`)

// gcpIntel are the families with CPUs of Intel.
var gcpIntel = []string{"n1", "n2", "n4", "c2", "c3", "c4", "m1", "m2", "m3", "m4", "h3", "z3", "g2", "a2", "a3"}

// localSSD is the size in GiB of one local SSD.
const localSSD = 375

// machine returns a machine type in common terms, without offers.
func (t *gcpType) machine() (*machine, error) {
	m := newMachine(t.where, t.Name)
	architecture, known := gcpArchitectures[t.Architecture]
	if !known {
		return nil, fmt.Errorf("%s: expected architecture X86_64 or ARM64, found %q", t.where, t.Architecture)
	}
	m.architecture = architecture
	m.cpu = *resource.NewQuantity(t.GuestCPUs, resource.DecimalSI)
	m.memory = times(t.MemoryMB, mebibyte)
	m.spot = true
	m.label(v1alpha1.InstanceLocalStorageLabel, strconv.FormatInt(times(t.BundledLocalSSDs.PartitionCount, localSSD), 10))
	for _, a := range t.Accelerators {
		if model, is := strings.CutPrefix(a.Type, "nvidia-"); is {
			m.gpus(nvidiaGPU, a.Count, strings.TrimPrefix(model, "tesla-"))
		} else {
			m.count(tpu, a.Count)
		}
	}
	if parts := gcpName.FindStringSubmatch(t.Name); parts != nil {
		family := parts[1] + parts[2] + parts[3]
		m.label(v1alpha1.InstanceFamilyLabel, family)
		m.label(v1alpha1.InstanceSizeLabel, parts[4])
		m.label(v1alpha1.InstanceCategoryLabel, parts[1])
		m.label(v1alpha1.InstanceGenerationLabel, parts[2])
		switch {
		case slices.Contains(gcpIntel, family):
			m.label(v1alpha1.InstanceCPUManufacturerLabel, "intel")
		case architecture == karpv1.ArchitectureAmd64 && parts[3] == "d":
			m.label(v1alpha1.InstanceCPUManufacturerLabel, "amd")
		}
	}
	return &m, nil
}
