// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/samber/lo"
)

// The Cluster that the operator serves, and the Secret with the bootstrap data of its machines.
const (
	ClusterName         = "demo"
	ClusterNamespace    = "default"
	BootstrapSecretName = "bootstrap"

	// NeighbourName is the name of the Cluster with Options.NeighbourOf. The names of its Secret and of its operator's
	// account end in it.
	NeighbourName = "neighbour"
)

// The topology of the Cluster with Options.Topology.
const (
	ClusterClassName          = "demo"
	TopologyVersion           = "v1.36.0"
	TopologyMachineDeployment = "md-0"
)

// FeatureGates is the value of the operator's flag with which Karpenter's feature gates are on, except for those that change
// how others disrupt Nodes: TerminateFirstDrift, TerminateFirstRepair and PodDeletionCostManagement.
const FeatureGates = "NodeRepair=true,NodeOverlay=true,ReservedCapacity=true,StaticCapacity=true,SpotToSpotConsolidation=true,CapacityBuffer=true"

// Options configure what Up starts. Only Dir is required.
type Options struct {
	// Dir is the state folder. Up creates it if it does not exist.
	Dir string

	// BinDir is the folder of the binaries: bin/ of this repository if it is empty.
	BinDir string

	// ClusterAPI is the version of Cluster API, which make has built into BinDir: by default that of CAPI in the environment,
	// and without it that of go.mod.
	ClusterAPI string

	// Kubernetes is the version of Kubernetes, which make has built into BinDir: by default that of KUBERNETES in the
	// environment, and without it that of hack/tools.
	Kubernetes string

	// Placement is where the operator is, Joined if it is empty. The others have two control planes: one for Cluster API's
	// objects, one for Pods, Nodes and NodePools.
	Placement Placement

	// OneEtcd makes both control planes use the same etcd, so that all changes have one order, which package
	// history needs.
	OneEtcd bool

	// Proxied puts a proxy between the operator and each of its API servers: Stack.WorkloadProxy and
	// Stack.ManagementProxy. They end with this process.
	Proxied bool

	// Manages starts only another management cluster for the workload cluster of this stack, which is one of two.
	// It has no Cluster and runs no operator, until the Cluster of the other stack is moved to it.
	Manages *Stack

	// NeighbourOf adds the Cluster NeighbourName to the management cluster of this stack, which has HasNeighbour. The new
	// stack has a workload cluster, an infrastructure provider and an operator of its own.
	NeighbourOf *Stack

	// HasNeighbour limits the infrastructure provider to the Cluster of this stack. It and its neighbour are
	// InWorkload, unless their Placement is InManagement.
	HasNeighbour bool

	// Topology makes the Cluster one of a ClusterClass, whose topology has the version TopologyVersion, a control plane of one
	// machine, and the MachineDeployment TopologyMachineDeployment without replicas. Cluster API's topology controllers run, and
	// its kubeadm providers: that of the bootstrap data and that of the control plane.
	Topology bool

	// Kubeadm starts Cluster API's kubeadm bootstrap provider. Machines with a KubeadmConfigTemplate then join as their
	// bootstrap data says.
	Kubeadm bool

	// Provider is the infrastructure provider of the Cluster, in place of the simulated one, which then only simulates the
	// control plane.
	Provider *Provider

	// WithoutOperator does not start the operator, so that it can be run in another way, such as in a debugger.
	WithoutOperator bool

	// WithoutCRDs leaves out Karpenter's CustomResourceDefinitions and this project's, which an installation of the
	// operator creates.
	WithoutCRDs bool

	// KwokInstanceTypes starts Karpenter with its own simulated provider, kwok, in place of the operator. It is a file
	// in the state folder, with the instance types of that provider.
	KwokInstanceTypes string

	// HeartbeatFactor is by how much less often than by default the heartbeats of Nodes come, and by how much later the
	// controller manager misses them; 1 if it is zero.
	HeartbeatFactor int

	// OperatorArgs are additional arguments of the operator.
	OperatorArgs []string

	// Progress is where each step is written to. Nil discards it.
	Progress io.Writer
}

// complete fills in the defaults and makes all paths absolute.
func (o *Options) complete(m *modules) error {
	if o.Dir == "" {
		return errors.New("the stack needs a state folder")
	}
	if o.BinDir == "" {
		o.BinDir = filepath.Join(m.root, "bin")
	}
	o.ClusterAPI = cmp.Or(o.ClusterAPI, os.Getenv(ClusterAPIVariable))
	o.Kubernetes = cmp.Or(o.Kubernetes, os.Getenv(KubernetesVariable))
	o.Placement = Placement(o.Placement.String())
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Manages != nil {
		o.Placement, o.WithoutOperator = InWorkload, true
	}
	if (o.NeighbourOf != nil || o.HasNeighbour) && !o.Placement.Separate() {
		o.Placement = InWorkload
	}
	o.Kubeadm = o.Kubeadm || o.Topology
	paths := []*string{&o.Dir, &o.BinDir}
	if o.KwokInstanceTypes != "" {
		paths = append(paths, &o.KwokInstanceTypes)
	}
	for _, path := range paths {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return o.checkBinaries()
}

// The environment variables with the versions of Cluster API and of Kubernetes, as CAPI and KUBERNETES of make.
const (
	ClusterAPIVariable = "CAPI"
	KubernetesVariable = "KUBERNETES"
)

// The binaries, all built by the Makefile.
const (
	binEtcd              = "etcd"
	binAPIServer         = "kube-apiserver"
	binControllerManager = "kube-controller-manager"
	binScheduler         = "kube-scheduler"
	binKubectl           = "kubectl"
	binKwok              = "kwok"
	binKwokctl           = "kwokctl"
	binClusterAPI        = "cluster-api-core"
	binKubeadmBootstrap  = "cluster-api-kubeadm-bootstrap"
	binKubeadmControl    = "cluster-api-kubeadm-control-plane"
	binInfrastructure    = "simulated-infrastructure"
	binOperator          = "karpenter-capi"
	binKarpenterKwok     = "karpenter-kwok"
)

func (o *Options) checkBinaries() error {
	names := []string{
		binEtcd, binAPIServer, binControllerManager, binScheduler, binKubectl, binKwok, binKwokctl,
		binClusterAPI, binInfrastructure,
	}
	if o.Kubeadm {
		names = append(names, binKubeadmBootstrap)
	}
	if o.Topology {
		names = append(names, binKubeadmControl)
	}
	if o.Provider != nil {
		names = append(names, o.Provider.manager())
	}
	switch {
	case o.KwokInstanceTypes != "":
		names = append(names, binKarpenterKwok)
	case !o.WithoutOperator:
		names = append(names, binOperator)
	}
	var missing []string
	for _, name := range names {
		if _, err := os.Stat(o.binary(name)); err != nil {
			missing = append(missing, strings.TrimPrefix(o.binary(name), o.BinDir+"/"))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not in %s: %s; build them with: make stack-binaries%s%s", o.BinDir, strings.Join(missing, ", "),
			given(ClusterAPIVariable, o.ClusterAPI), given(KubernetesVariable, o.Kubernetes))
	}
	return nil
}

// clusterName returns the name of the Cluster.
func (o *Options) clusterName() string {
	return lo.Ternary(o.NeighbourOf == nil, ClusterName, NeighbourName)
}

// named returns the name of something in the management cluster that a neighbour has, too.
func (o *Options) named(name string) string {
	return lo.Ternary(o.NeighbourOf == nil, name, name+"-"+NeighbourName)
}

// binary returns the path of a binary. Those of another version than the default one are in a folder of that version.
func (o *Options) binary(name string) string {
	switch name {
	case binClusterAPI, binKubeadmBootstrap, binKubeadmControl:
		if o.ClusterAPI != "" {
			return filepath.Join(o.clusterAPIDir(), name)
		}
	case binAPIServer, binControllerManager, binScheduler, binKubectl:
		if o.Kubernetes != "" {
			return filepath.Join(o.BinDir, "kubernetes", o.Kubernetes, name)
		}
	}
	return filepath.Join(o.BinDir, name)
}

// clusterAPIDir is the folder with the managers of another version of Cluster API, and with its manifests.
func (o *Options) clusterAPIDir() string {
	return filepath.Join(o.BinDir, "cluster-api", o.ClusterAPI)
}

// given returns the argument of make that gives a variable a value; empty without a value.
func given(variable, value string) string {
	if value == "" {
		return ""
	}
	return " " + variable + "=" + value
}
