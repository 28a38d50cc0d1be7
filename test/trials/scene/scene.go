// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"text/template"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/harness/workload"
)

// manifests are the template and the NodePool.
//
//go:embed manifests.yaml
var manifests string

// TemplateName is the name of the KarpenterMachineTemplate in the manifests.
const TemplateName = "general"

const readyWithin = time.Minute

// failureReason is the reason of a machine that fails: no capacity of its kind is left.
const failureReason = "InsufficientInstanceCapacity"

// Options configure the machines of a scene.
type Options struct {
	// Kind is the kind of scalable resource.
	Kind kinds.Kind
	// Failing is the share of the machines of instance type a that fail, in percent. Those are more than half of all.
	Failing int
	// LaunchTimeout is how long the launch of a machine can take.
	LaunchTimeout time.Duration
	// RemoveAnnotated makes the provider of MachinePools behave like Azure's.
	RemoveAnnotated bool
}

// Scene is a stack with six offerings, and Deployments that use them.
type Scene struct {
	*stack.Stack
	Options
	began time.Time
	shown shown
}

// New returns a scene on a stack that has nothing yet.
func New(on *stack.Stack, options Options) *Scene {
	return &Scene{Stack: on, Options: options, began: time.Now()}
}

// AuditLog is the audit log of the workload cluster.
func (s *Scene) AuditLog() audit.Log {
	return audit.Log{Path: filepath.Join(s.LogDir(), "audit.log")}
}

// machineLog is the audit log of the cluster with the Machines.
func (s *Scene) machineLog() audit.Log {
	if !s.Separate() {
		return s.AuditLog()
	}
	return audit.Log{Path: filepath.Join(s.LogDir(), stack.ManagementPrefix+"audit.log")}
}

// Prepare creates everything except the Pods.
func (s *Scene) Prepare(ctx context.Context) error {
	for _, base := range s.infrastructure() {
		if err := s.Management.Create(ctx, base); err != nil {
			return fmt.Errorf("creating the infrastructure template %s: %w", base.GetName(), err)
		}
	}
	objects := &bytes.Buffer{}
	values := struct {
		LaunchTimeoutSeconds int
		Workloads            []Share
	}{int(s.LaunchTimeout.Seconds()), Workloads}
	if err := template.Must(template.New("manifests").Parse(manifests)).Execute(objects, values); err != nil {
		return err
	}
	if err := s.Create(ctx, s.Kind.Manifests(objects.Bytes())); err != nil {
		return err
	}
	for _, deployment := range deployments() {
		if err := s.Workload.Create(ctx, deployment); err != nil {
			return fmt.Errorf("creating Deployment %s: %w", deployment.Name, err)
		}
	}
	return s.Await(ctx, readyWithin, "the NodePools to be ready", func(ctx context.Context) (bool, string, error) {
		pools := &karpv1.NodePoolList{}
		if err := s.Workload.List(ctx, pools); err != nil {
			return false, err.Error(), nil
		}
		ready := lo.CountBy(pools.Items, func(pool karpv1.NodePool) bool { return pool.StatusConditions().IsTrue("Ready") })
		return ready == len(Workloads), fmt.Sprintf("%d of %d are", ready, len(Workloads)), nil
	})
}

// infrastructure returns the infrastructure machine templates of the instance types.
func (s *Scene) infrastructure() []client.Object {
	var templates []client.Object
	for _, instanceType := range []string{failingType, "b", "c", slowType} {
		delays := infrav1.Delays{
			Provisioning: delay(time.Second, time.Second),
			ProviderID:   delay(time.Second, 4*time.Second),
			NodeJoin:     delay(time.Second, 4*time.Second),
			Termination:  delay(time.Second, 5*time.Second),
		}
		var failure *infrav1.Failure
		switch instanceType {
		case failingType:
			failure = &infrav1.Failure{Percent: int32(s.Failing), Reason: failureReason, Message: "No capacity is left in this zone"}
		case slowType:
			delays.ProviderID, delays.NodeJoin = delay(20*time.Second, 10*time.Second), delay(5*time.Second, 5*time.Second)
		}
		meta := metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: instanceType}
		templates = append(templates, s.base(meta, infrav1.SimulatedMachineSpec{
			Capacity: workload.Capacity, Reserved: workload.Reserved, InstanceType: instanceType, Delays: delays, Failure: failure,
		}))
	}
	return templates
}

// base returns a template of machines, or of machine pools.
func (s *Scene) base(meta metav1.ObjectMeta, machine infrav1.SimulatedMachineSpec) client.Object {
	if s.Kind == kinds.MachinePool {
		pools := &infrav1.SimulatedMachinePoolTemplate{ObjectMeta: meta}
		pools.Spec.Template.Spec.SimulatedMachineSpec = machine
		pools.Spec.Template.Spec.Behavior.RemoveAnnotated = s.RemoveAnnotated
		return pools
	}
	machines := &infrav1.SimulatedMachineTemplate{ObjectMeta: meta}
	machines.Spec.Template.Spec = machine
	return machines
}

func delay(duration, jitter time.Duration) infrav1.Delay {
	return infrav1.Delay{Duration: metav1.Duration{Duration: duration}, Jitter: metav1.Duration{Duration: jitter}}
}
