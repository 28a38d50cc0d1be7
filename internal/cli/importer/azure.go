// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// azurePricesURL is the address of the prices, for a shell.
const azurePricesURL = `'https://prices.azure.com/api/retail/prices?$filter=serviceName%20eq%20%27Virtual%20Machines%27` +
	`%20and%20armRegionName%20eq%20%27REGION%27%20and%20priceType%20eq%20%27Consumption%27'`

// azureFormat is Azure. The allowance is the default of Karpenter's provider for Azure
// (VM_MEMORY_OVERHEAD_PERCENT).
var azureFormat = Format{
	Name: "azure",
	Help: `Save these, in any order, and each page of the prices in a file of its own:
  az vm list-skus --location REGION --resource-type virtualMachines --output json
  curl ` + azurePricesURL + `
A page names the next one in NextPageLink.`,
	Allowance: decimal.RequireFromString("7.5"),
	read:      readAzure,
}

// azureInput is what the files have.
type azureInput struct {
	*inventory
	sizes []azureSize
	// prices are those of each size and capacity type.
	prices map[[2]string]azurePrice
	// regions are those of the prices.
	regions map[string]bool
	// pages and last are how many pages of prices there are, and how many have no next one.
	pages, last int
}

// azureSize is a value of az vm list-skus.
type azureSize struct {
	where        string
	Name         string                         `json:"name"`
	ResourceType string                         `json:"resourceType"`
	Locations    []string                       `json:"locations"`
	Capabilities []struct{ Name, Value string } `json:"capabilities"`
	LocationInfo []struct {
		Location string   `json:"location"`
		Zones    []string `json:"zones"`
	} `json:"locationInfo"`
	Restrictions []azureRestriction `json:"restrictions"`
}

// azureRestriction is where the subscription cannot use a size.
type azureRestriction struct {
	Type            string `json:"type"`
	RestrictionInfo struct {
		Zones []string `json:"zones"`
	} `json:"restrictionInfo"`
}

func readAzure(files []File, options *Options) (*inventory, error) {
	in := &azureInput{inventory: &inventory{skipped: skips{}}, prices: map[[2]string]azurePrice{}, regions: map[string]bool{}}
	for _, file := range files {
		if err := in.read(file); err != nil {
			return nil, err
		}
	}
	switch {
	case len(in.sizes) == 0:
		return nil, errors.New("the files have no sizes: add what this prints to --from: az vm list-skus --location REGION --resource-type virtualMachines --output json")
	case len(in.prices) == 0 && !options.computesPrices():
		return nil, errors.New("the files have no prices of Linux virtual machines: add each page of this to --from: curl " + azurePricesURL)
	case in.pages > 0 && in.last == 0:
		return nil, errors.New("each page of the prices has a NextPageLink: save all pages, up to the one without it")
	}
	if err := in.findRegion(); err != nil {
		return nil, err
	}
	zonal := slices.ContainsFunc(in.sizes, func(s azureSize) bool { return len(s.zones()) > 0 })
	for i := range in.sizes {
		m, err := in.machine(&in.sizes[i], zonal, options)
		if err != nil {
			return nil, err
		}
		if m != nil {
			in.machines = append(in.machines, *m)
		}
	}
	return in.inventory, nil
}

// read reads a file: an array of sizes, or an object with prices.
func (in *azureInput) read(file File) error {
	top, err := open(file)
	if err != nil {
		return err
	}
	if top.document.isArray {
		if err := top.each(in.readSize); err != nil {
			return err
		}
		return top.close()
	}
	var known, next bool
	var found []string
	err = top.fields(func(key string, value element) error {
		found = append(found, key)
		switch key {
		case "Items":
			known = true
			in.pages++
			return value.each(in.readItem)
		case "NextPageLink":
			var link *string
			err := value.read(&link)
			next = lo.FromPtr(link) != ""
			return err
		}
		return value.skip()
	})
	if err != nil {
		return err
	}
	if !known {
		return fmt.Errorf("%s: expected an array of sizes, or an object with Items of retail prices, found an object with %s", file.Name, quoted(found))
	}
	if !next {
		in.last++
	}
	return top.close()
}

func (in *azureInput) readSize(value element) error {
	s := azureSize{}
	if err := value.read(&s); err != nil {
		return err
	}
	if s.ResourceType != "virtualMachines" {
		return value.errorf("expected resourceType virtualMachines, found %q: run az vm list-skus with --resource-type virtualMachines", s.ResourceType)
	}
	if s.Name == "" || len(s.Locations) != 1 {
		return value.errorf("expected a name and one location, found %q and %v", s.Name, s.Locations)
	}
	s.where = fmt.Sprintf("%s (%s)", value, s.Name)
	in.sizes = append(in.sizes, s)
	return nil
}

// findRegion sets the region, which is that of all sizes and prices.
func (in *azureInput) findRegion() error {
	for _, s := range in.sizes {
		location := strings.ToLower(s.Locations[0])
		if in.region != "" && in.region != location {
			return fmt.Errorf("%s: it is in location %s, but others are in %s: run az vm list-skus with --location", s.where, location, in.region)
		}
		in.region = location
	}
	if len(in.regions) > 0 && (len(in.regions) > 1 || !in.regions[in.region]) {
		names := strings.Join(slices.Sorted(maps.Keys(in.regions)), ", ")
		return fmt.Errorf("the sizes are in %s, but the prices are of %s: save both for the same region", in.region, names)
	}
	return nil
}

// zones returns the zones in which the subscription can use a size.
func (s *azureSize) zones() []string {
	var zones []string
	for _, info := range s.LocationInfo {
		zones = append(zones, info.Zones...)
	}
	for _, r := range s.Restrictions {
		if r.Type == "Zone" {
			zones = lo.Without(zones, r.RestrictionInfo.Zones...)
		}
	}
	slices.Sort(zones)
	return zones
}

// azureDiskDriver reports as its limit the number of data disks of the size (azuredisk-csi-driver: pkg/azuredisk/nodeserver.go).
const azureDiskDriver = "disk.csi.azure.com"

var azureArchitectures = map[string]string{"": karpv1.ArchitectureAmd64, "x64": karpv1.ArchitectureAmd64, "Arm64": karpv1.ArchitectureArm64}

// machine returns a size in common terms; nil if it is left out.
func (in *azureInput) machine(s *azureSize, zonal bool, options *Options) (*machine, error) {
	m := newMachine(s.where, s.Name)
	has := lo.SliceToMap(s.Capabilities, func(c struct{ Name, Value string }) (string, string) { return c.Name, c.Value })
	number := func(name string) (decimal.Decimal, error) {
		value, err := ParseDecimal(lo.CoalesceOrEmpty(has[name], "0"))
		if err != nil {
			return value, fmt.Errorf("%s: capability %s: expected a number, found %q", m.where, name, has[name])
		}
		return value, nil
	}
	values := map[string]decimal.Decimal{}
	for _, name := range []string{"vCPUs", "vCPUsAvailable", "MemoryGB", "GPUs", "MaxResourceVolumeMB", "NvmeDiskSizeInMiB", "MaxDataDiskCount"} {
		value, err := number(name)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	architecture, known := azureArchitectures[has["CpuArchitectureType"]]
	if !known {
		return nil, fmt.Errorf("%s: capability CpuArchitectureType: expected x64 or Arm64, found %q", m.where, has["CpuArchitectureType"])
	}
	m.architecture = architecture
	cpus := lo.Ternary(values["vCPUsAvailable"].IsPositive(), values["vCPUsAvailable"], values["vCPUs"])
	m.cpu = *resource.NewQuantity(whole(cpus), resource.DecimalSI)
	m.memory = whole(values["MemoryGB"].Mul(decimal.NewFromInt(gibibyte)))
	disk := lo.Ternary(values["NvmeDiskSizeInMiB"].IsPositive(), values["NvmeDiskSizeInMiB"], values["MaxResourceVolumeMB"])
	m.label(v1alpha1.InstanceLocalStorageLabel, fmt.Sprint(whole(disk)/1024))
	if disks := whole(values["MaxDataDiskCount"]); disks > 0 {
		m.attachable(azureDiskDriver, disks)
	}
	azureName(&m, whole(values["GPUs"]))
	m.spot = strings.EqualFold(has["LowPriorityCapable"], "true")
	if slices.ContainsFunc(s.Restrictions, func(r azureRestriction) bool { return r.Type == "Location" }) {
		in.skipped.add("that the subscription cannot use in "+in.region, m.name)
		return nil, nil
	}
	zones := s.zones()
	if zonal && len(zones) == 0 {
		in.skipped.add("without a zone in which the subscription can use them", m.name)
		return nil, nil
	}
	in.addOffers(&m, zones, options)
	return &m, nil
}

// addOffers adds the offers of a machine. Nodes have the region in the names of their zones.
func (in *azureInput) addOffers(m *machine, zones []string, options *Options) {
	if _, priced := in.prices[[2]string{m.name, karpv1.CapacityTypeOnDemand}]; !priced && !options.computesPrices() {
		return // build reports machines without offers
	}
	names := lo.Map(zones, func(zone string, _ int) string { return in.region + "-" + zone })
	if len(names) == 0 {
		names = []string{""}
	}
	for _, zone := range names {
		if zone != "" && !matches(options.Zones, zone) {
			continue
		}
		for _, capacityType := range []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot} {
			o := offer{zone: zone, capacityType: capacityType}
			price, priced := in.prices[[2]string{m.name, capacityType}]
			if priced {
				o.price = &price.price
			}
			if capacityType == karpv1.CapacityTypeOnDemand || priced && m.spot {
				m.offers = append(m.offers, o)
			}
		}
	}
}
