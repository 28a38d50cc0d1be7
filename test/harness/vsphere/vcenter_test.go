// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// A client that logs in as the provider does, through the proxy.
func newProvider(t *testing.T, v *VCenter) *govmomi.Client {
	t.Helper()
	address, err := soap.ParseURL(Server)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := url.Parse(v.ProxyURL())
	if err != nil {
		t.Fatal(err)
	}
	soapClient := soap.NewClient(address, true)
	soapClient.Transport = &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // It is simulated.
	client, err := vim25.NewClient(t.Context(), soapClient)
	if err != nil {
		t.Fatal(err)
	}
	c := &govmomi.Client{Client: client, SessionManager: session.NewManager(client)}
	if err := c.Login(t.Context(), url.UserPassword(User, Password)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestVCenter(t *testing.T) {
	v, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Stop)
	provider := newProvider(t, v)
	finder := find.NewFinder(provider.Client, false)
	datacenter, err := finder.Datacenter(t.Context(), Datacenter)
	if err != nil {
		t.Fatal(err)
	}
	finder.SetDatacenter(datacenter)
	template, err := finder.VirtualMachine(t.Context(), Template)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := finder.Folder(t.Context(), "/dc-1/vm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := finder.Network(t.Context(), network); err != nil {
		t.Error(err)
	}
	clone := func(name string) error {
		pool, err := finder.ResourcePool(t.Context(), "/dc-1/host/rack-b/Resources")
		if err != nil {
			t.Fatal(err)
		}
		ref := pool.Reference()
		return done(t.Context())(template.Clone(t.Context(), folder, name, types.VirtualMachineCloneSpec{
			Location: types.VirtualMachineRelocateSpec{Pool: &ref},
			Config: &types.VirtualMachineConfigSpec{
				NumCPUs: 4, MemoryMB: 16384, ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: "guestinfo.userdata", Value: "x"}},
			},
		}))
	}
	if err := clone("first"); err != nil {
		t.Fatal(err)
	}
	machines, err := v.Machines(t.Context())
	if err != nil || len(machines) != 1 {
		t.Fatalf("machines %+v, %v", machines, err)
	}
	if m := machines[0]; m.Name != "first" || m.CPUs != 4 || m.MemoryMiB != 16384 || m.Zone != "rack-b" || m.settings["guestinfo.userdata"] != "x" {
		t.Errorf("the clone is %+v", m)
	}

	v.Refuse("no resources")
	if err := clone("second"); err == nil || !strings.Contains(err.Error(), "no resources") {
		t.Errorf("a clone that is refused: %v", err)
	}
	v.Refuse("")
	if err := clone("second"); err != nil {
		t.Error(err)
	}

	if err := v.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := provider.SessionManager.UserSession(t.Context()); err == nil {
		t.Error("a request succeeds while vCenter is disconnected")
	}
	v.Connect()
	if user, err := provider.SessionManager.UserSession(t.Context()); err != nil || user != nil {
		t.Errorf("the session is %v, %v", user, err)
	}

	if machines, err = v.Machines(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := machines[slices.IndexFunc(machines, func(m Machine) bool { return m.Name == "first" })]
	// The provider has started it meanwhile.
	vm := object.NewVirtualMachine(v.client.Client, first.reference)
	if err := done(t.Context())(vm.PowerOn(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := v.Destroy(t.Context(), first); err != nil {
		t.Error(err)
	}
	if machines, err = v.Machines(t.Context()); err != nil || len(machines) != 1 {
		t.Errorf("machines %+v, %v", machines, err)
	}
}
