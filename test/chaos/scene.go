// SPDX-License-Identifier: Apache-2.0

package main

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

	"github.com/karpenter-capi/karpenter-capi/test/audit"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
	"github.com/karpenter-capi/karpenter-capi/test/workload"
)

// manifests are the template and the NodePool.
//
//go:embed manifests.yaml
var manifests string

const readyWithin = time.Minute

// failureReason is the reason of a machine that fails: no capacity of its kind is left.
const failureReason = "InsufficientInstanceCapacity"

// scene is a stack on which a trial runs.
type scene struct {
	*stack.Stack
	sizes
	began time.Time
	shown shown

	// ended is whether the kills have ended, so that a remaining failure is permanent.
	ended bool
}

func newScene(on *stack.Stack, sizes sizes) *scene {
	return &scene{Stack: on, sizes: sizes, began: time.Now()}
}

// auditLog is the audit log of the only API server.
func (s *scene) auditLog() audit.Log {
	return audit.Log{Path: filepath.Join(s.LogDir(), "audit.log")}
}

// prepare creates everything except the Pods.
func (s *scene) prepare(ctx context.Context) error {
	for _, base := range s.infrastructure() {
		if err := s.Management.Create(ctx, base); err != nil {
			return fmt.Errorf("creating the infrastructure template %s: %w", base.GetName(), err)
		}
	}
	objects := &bytes.Buffer{}
	values := struct {
		LaunchTimeout time.Duration
		Workloads     []share
	}{s.launchTimeout, workloads}
	if err := template.Must(template.New("manifests").Parse(manifests)).Execute(objects, values); err != nil {
		return err
	}
	if err := s.Create(ctx, s.kind.Manifests(objects.Bytes())); err != nil {
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
		return ready == len(workloads), fmt.Sprintf("%d of %d are", ready, len(workloads)), nil
	})
}

// infrastructure returns the infrastructure machine templates of the instance types.
func (s *scene) infrastructure() []client.Object {
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
			failure = &infrav1.Failure{Percent: int32(s.failing), Reason: failureReason, Message: "No capacity is left in this zone"}
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
func (s *scene) base(meta metav1.ObjectMeta, machine infrav1.SimulatedMachineSpec) client.Object {
	if s.kind == kinds.MachinePool {
		pools := &infrav1.SimulatedMachinePoolTemplate{ObjectMeta: meta}
		pools.Spec.Template.Spec.SimulatedMachineSpec = machine
		pools.Spec.Template.Spec.Behavior.RemoveAnnotated = s.removeAnnotated
		return pools
	}
	machines := &infrav1.SimulatedMachineTemplate{ObjectMeta: meta}
	machines.Spec.Template.Spec = machine
	return machines
}

func delay(duration, jitter time.Duration) infrav1.Delay {
	return infrav1.Delay{Duration: metav1.Duration{Duration: duration}, Jitter: metav1.Duration{Duration: jitter}}
}
