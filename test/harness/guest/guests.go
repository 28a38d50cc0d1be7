// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/kubeadm"
)

// Machine is a machine of the cloud.
type Machine struct {
	// ID is unique in the cloud, and Name is for messages.
	ID, Name string
	Running  bool
	// Boot returns what the machine reads when it boots: its user data and its host name.
	Boot func() (userData []byte, hostname string, err error)
	// ProviderID and Labels are what the cloud controller manager gives its Node.
	ProviderID string
	Labels     map[string]string
	// Resources are what its kernel leaves.
	Resources corev1.ResourceList
}

// Guests are what runs in all machines of a cloud.
type Guests struct {
	// Machines lists those of the cloud.
	Machines func(context.Context) ([]Machine, error)
	// Workload is the cluster that they join, whose API server is at Endpoint and has Authority.
	Workload  client.Client
	Endpoint  string
	Authority []byte
	Log       logr.Logger

	// booted has the machines whose Nodes have joined, by ID, and the names of the Nodes.
	booted map[string]string
}

// Interval is how often they look at the machines.
const Interval = 200 * time.Millisecond

// Run acts until the context ends.
func (g *Guests) Run(ctx context.Context) {
	g.booted = map[string]string{}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := g.act(ctx); err != nil && ctx.Err() == nil {
			g.Log.Info("Something that runs in a machine failed", "error", err.Error())
		}
	}, Interval)
}

func (g *Guests) act(ctx context.Context) error {
	machines, err := g.Machines(ctx)
	if err != nil {
		return err
	}
	var errs []error
	exists := map[string]bool{}
	for _, machine := range machines {
		exists[machine.ID] = true
		if machine.Running && g.booted[machine.ID] == "" {
			if err := g.boot(ctx, machine); err != nil {
				errs = append(errs, fmt.Errorf("machine %s: %w", machine.Name, err))
			}
		}
	}
	for id, node := range g.booted {
		if !exists[id] {
			errs = append(errs, client.IgnoreNotFound(g.Workload.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})))
			delete(g.booted, id)
		}
	}
	return errors.Join(errs...)
}

// boot does what cloud-init and kubeadm do, once.
func (g *Guests) boot(ctx context.Context, machine Machine) error {
	userData, hostname, err := machine.Boot()
	if err != nil {
		return err
	}
	join, err := kubeadm.Read(userData, hostname)
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
	g.booted[machine.ID] = join.NodeName
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
