// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/guest"
)

// architectures has Kubernetes' names of those of AWS.
var architectures = map[string]string{"x86_64": "amd64", "arm64": "arm64"}

// Guests lists the instances for what runs in them.
func (c *Cloud) Guests(context.Context) ([]guest.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lo.FilterMap(c.instances, func(i *instance, _ int) (guest.Machine, bool) { return c.newGuest(i), i.alive() }), nil
}

func (c *Cloud) newGuest(i *instance) guest.Machine {
	kind := c.types[i.InstanceType]
	return guest.Machine{
		ID: i.ID, Name: i.ID, Running: i.state == running, ProviderID: i.ProviderID(),
		Boot: func() ([]byte, string, error) {
			userData, err := c.userData(i)
			return userData, i.Hostname, err
		},
		Labels: map[string]string{
			corev1.LabelArchStable: architectures[architectureOf[i.launch.imageID]], corev1.LabelInstanceTypeStable: i.InstanceType,
			corev1.LabelTopologyZone: i.Zone, corev1.LabelTopologyRegion: Region,
		},
		Resources: guest.Resources(kind.VCPUInfo.DefaultVCPUs, kind.MemoryInfo.SizeInMiB, i.DiskGiB),
	}
}

// The variables of the provider's script that reads the user data from Secrets Manager.
var (
	secretPrefix = regexp.MustCompile(`(?m)^SECRET_PREFIX="(.+)"$`)
	secretChunks = regexp.MustCompile(`(?m)^CHUNKS="([0-9]+)"$`)
)

// userData returns what cloud-init reads. If that is the provider's script, it does what the script does: it reads the user data from
// Secrets Manager once, and deletes it there.
func (c *Cloud) userData(i *instance) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(i.launch.userData)
	if err != nil {
		return nil, fmt.Errorf("decoding the user data: %w", err)
	}
	prefix := secretPrefix.FindSubmatch(data)
	chunks := secretChunks.FindSubmatch(data)
	if prefix == nil || chunks == nil {
		return data, nil
	}
	count, err := strconv.Atoi(string(chunks[1]))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i.secret != nil {
		return i.secret, nil
	}
	var packed []byte
	for chunk := range count {
		part, found := c.secrets[fmt.Sprintf("%s-%d", prefix[1], chunk)]
		if !found {
			return nil, fmt.Errorf("the secret %s-%d does not exist", prefix[1], chunk)
		}
		packed = append(packed, part...)
	}
	for chunk := range count {
		delete(c.secrets, fmt.Sprintf("%s-%d", prefix[1], chunk))
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	i.secret, err = io.ReadAll(reader)
	return i.secret, errors.Join(err, reader.Close())
}
