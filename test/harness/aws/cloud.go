// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"
)

// Region is the simulated region.
const Region = "us-east-1"

// Zones are its availability zones.
var Zones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

// zoneOfSubnet has the zone of each private subnet.
var zoneOfSubnet = map[string]string{"subnet-0a": Zones[0], "subnet-0b": Zones[1], "subnet-0c": Zones[2]}

// Cloud is a simulated region of AWS.
type Cloud struct {
	listener net.Listener
	server   *http.Server
	types    map[string]InstanceType

	mu sync.Mutex
	// serial is the number of the last ID.
	serial int
	// instances has all instances, in the order of their launch. Those that were terminated stay, as they do in AWS for an hour.
	instances []*instance
	secrets   map[string][]byte
	templates map[string]*launchTemplate // by ID
	groups    map[string]*group          // by name
	exhausted []Pool
	// denied is the message with which AWS denies all launches; empty if it does not.
	denied  string
	unknown []string
}

// Pool is what AWS has capacity of.
type Pool struct {
	InstanceType, Zone string
	Spot               bool
}

// InstanceType is the part of the description of an instance type that matters here, as the command line of AWS prints it.
type InstanceType struct {
	Name          string `json:"InstanceType"`
	ProcessorInfo struct{ SupportedArchitectures []string }
	VCPUInfo      struct {
		DefaultVCPUs int64 `json:"DefaultVCpus"`
	} `json:"VCpuInfo"`
	MemoryInfo struct{ SizeInMiB int64 }
}

// Start starts a region on 127.0.0.1 whose instance types are those in the output of `aws ec2 describe-instance-types`. Stop must
// follow.
func Start(instanceTypes []byte) (*Cloud, error) {
	printed := struct{ InstanceTypes []InstanceType }{}
	if err := json.Unmarshal(instanceTypes, &printed); err != nil {
		return nil, fmt.Errorf("reading instance types: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Cloud{
		listener: listener, secrets: map[string][]byte{}, templates: map[string]*launchTemplate{}, groups: map[string]*group{},
		types: lo.KeyBy(printed.InstanceTypes, func(t InstanceType) string { return t.Name }),
	}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// Stop ends it.
func (c *Cloud) Stop() { _ = c.server.Close() }

// Env is the environment in which the client of AWS uses this region.
func (c *Cloud) Env() []string {
	return []string{
		"AWS_ENDPOINT_URL=http://" + c.listener.Addr().String(), "AWS_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=simulated", "AWS_SECRET_ACCESS_KEY=simulated", "AWS_EC2_METADATA_DISABLED=true",
	}
}

// Exhaust leaves pools without capacity for another instance, and gives all others capacity.
func (c *Cloud) Exhaust(pools ...Pool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exhausted = pools
	c.settleAll()
}

// Deny makes AWS deny all launches with a message; an empty one ends that.
func (c *Cloud) Deny(message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied = message
}

// Instances returns those that have not been terminated.
func (c *Cloud) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lo.FilterMap(c.instances, func(i *instance, _ int) (Instance, bool) { return i.Instance, i.alive() })
}

// Terminate terminates an instance without the provider.
func (c *Cloud) Terminate(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.instances {
		if i.ID == id {
			i.state = terminated
		}
	}
	c.settleAll()
}

// Secrets returns how many secrets there are.
func (c *Cloud) Secrets() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.secrets)
}

// Unknown returns the requests that the simulation does not know.
func (c *Cloud) Unknown() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.unknown)
}

// next returns another ID.
func (c *Cloud) next(prefix string) string {
	c.serial++
	return fmt.Sprintf("%s-%017x", prefix, c.serial)
}
