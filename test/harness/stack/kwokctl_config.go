// SPDX-License-Identifier: Apache-2.0

package stack

import (
	_ "embed" // for the stages
	"errors"
	"os"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
)

// auditPolicy logs who requested what and when, without the objects, which is enough to count writes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
# Leases are renewed and health is checked all the time. Those of operators show whether their rights suffice.
- level: Metadata
  resources: [{group: coordination.k8s.io, resources: [leases]}]
  namespaces: [default]
- level: None
  resources: [{group: coordination.k8s.io, resources: [leases]}]
- level: None
  nonResourceURLs: ["/healthz*", "/readyz*", "/livez*", "/version", "/api*", "/openapi*"]
- level: Metadata
`

// stages are what kwok does with some Pods in place of its defaults.
//
//go:embed manifests/stages.yaml
var stages []byte

// configuration is the part of the configuration of kwokctl, or of kwok itself, that differs from its defaults.
type configuration struct {
	APIVersion        string             `json:"apiVersion"`
	Kind              string             `json:"kind"`
	Options           map[string]any     `json:"options"`
	ComponentsPatches []componentPatches `json:"componentsPatches,omitempty"`
}

// leasesAtOnce is how many leases of Nodes kwok renews at once.
const leasesAtOnce = 64

type componentPatches struct {
	Name      string     `json:"name"`
	ExtraArgs []extraArg `json:"extraArgs"`
}

type extraArg struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Override bool   `json:"override"`
}

// writeConfig writes kwokctl's configuration of the control plane, the audit policy and the stages.
func (cp *controlPlane) writeConfig(opts *Options, ports []int, configFile, policyFile, stagesFile string) error {
	components := []string{Etcd, APIServer, ControllerManager}
	if cp.nodes {
		components = append(components, Scheduler, kwokController)
	}
	config := configuration{
		APIVersion: "config.kwok.x-k8s.io/v1alpha1",
		Kind:       "KwokctlConfiguration",
		Options: map[string]any{
			"runtime":                     "binary",
			"components":                  components,
			"bindAddress":                 localhost,
			"kubeAuditPolicy":             policyFile,
			"disableQPSLimits":            true,
			"etcdPort":                    ports[0],
			"etcdPeerPort":                ports[1],
			"kubeApiserverPort":           ports[2],
			"kubeControllerManagerPort":   ports[3],
			"kubeSchedulerPort":           ports[4],
			"kwokControllerPort":          ports[5],
			"etcdBinary":                  opts.binary(binEtcd),
			"kubeApiserverBinary":         opts.binary(binAPIServer),
			"kubeControllerManagerBinary": opts.binary(binControllerManager),
			"kubeSchedulerBinary":         opts.binary(binScheduler),
			"kubectlBinary":               opts.binary(binKubectl),
			"kwokControllerBinary":        opts.binary(binKwok),
			// A Node whose heartbeat stops is found as fast as in a real cluster, not after five times as long.
			"heartbeatFactor": max(1, opts.HeartbeatFactor),
		},
		ComponentsPatches: []componentPatches{
			// The data does not have to survive a crash of the machine.
			{Name: Etcd, ExtraArgs: []extraArg{{Key: "unsafe-no-fsync", Value: "true"}}},
			{Name: APIServer, ExtraArgs: []extraArg{
				{Key: "advertise-address", Value: localhost},
				// Since v1.37, the API server does not start otherwise with this address, which no Pod could use.
				{Key: "endpoint-reconciler-type", Value: "none"},
				// A rotated audit log would lack requests.
				{Key: "audit-log-maxsize", Value: "0"},
				// With disableQPSLimits, kwokctl turns this off. Without a limit of the requests at once, the watches of an
				// API server with two cores are up to ten seconds late during a burst. The default of 600 is for larger ones.
				{Key: "enable-priority-and-fairness", Value: "true", Override: true},
				{Key: "max-requests-inflight", Value: "40", Override: true},
				{Key: "max-mutating-requests-inflight", Value: "20", Override: true},
			}},
			// There is one of each. With a lease, it would end if a killed API server takes long to restart.
			{Name: ControllerManager, ExtraArgs: []extraArg{
				{Key: "leader-elect", Value: "false"},
				// The heartbeatFactor would apply to this as well, so that a Node keeps a taint for long after it is ready.
				{Key: "node-monitor-period", Value: "5s", Override: true},
			}},
			{Name: Scheduler, ExtraArgs: []extraArg{{Key: "leader-elect", Value: "false"}}},
			{Name: kwokController, ExtraArgs: []extraArg{
				{Key: "manage-all-nodes", Value: "false", Override: true},
				{Key: "manage-nodes-with-annotation-selector", Value: "kwok.x-k8s.io/node=fake"},
				// It reads these in addition to its defaults. In the configuration of kwokctl, they would replace those.
				{Key: "config", Value: stagesFile},
			}},
		},
	}
	if cp.etcd != nil {
		config.ComponentsPatches = append(config.ComponentsPatches, componentPatches{Name: APIServer, ExtraArgs: []extraArg{
			{Key: "etcd-servers", Value: "http://" + address(cp.etcd.Port), Override: true},
			{Key: "etcd-prefix", Value: history.ManagementPrefix, Override: true},
		}})
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	// Each kubelet renews its lease by itself. By default, kwok renews four at once. With 2,000 Nodes and a busy API server, leases
	// then expire.
	kubelets, err := yaml.Marshal(configuration{
		APIVersion: config.APIVersion, Kind: "KwokConfiguration", Options: map[string]any{
			"nodeLeaseParallelism": leasesAtOnce,
			// kwok's defaults, which kwokctl does not add to a configuration.
			"podPlayStageParallelism": 4, "nodePlayStageParallelism": 4, "podsOnNodeSyncParallelism": 1,
			"enablePodsOnNodeSyncListPager": true, "enableDebuggingHandlers": true, "enableProfilingHandler": true,
		},
	})
	if err != nil {
		return err
	}
	data = slices.Concat(data, []byte("---\n"), kubelets)
	return errors.Join(
		os.WriteFile(policyFile, []byte(auditPolicy), 0o600),
		os.WriteFile(stagesFile, stages, 0o600),
		os.WriteFile(configFile, data, 0o600),
	)
}
