// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/trials/demo/manifests"
)

const (
	manyPods = 60
	fewPods  = 20

	readyWithin       = time.Minute
	runWithin         = 4 * time.Minute
	consolidateWithin = 4 * time.Minute
	goneWithin        = 4 * time.Minute
)

// story is a run of the demo.
type story struct {
	*stack.Stack
	kind     kinds.Kind
	progress *progress
	// now is the current counts, most is the maximum so far.
	now, most counts
	// seen is what the kubectl plugin has shown of the Nodes that were left after the consolidation.
	seen string
}

func newStory(on *stack.Stack, kind kinds.Kind) *story {
	return &story{Stack: on, kind: kind, progress: newProgress()}
}

func (s *story) tell(ctx context.Context) error {
	for _, step := range []struct {
		text string
		do   func(context.Context) error
	}{
		{"import a catalog with 9 instance types in 3 zones, on demand and spot; create one base template, a KarpenterMachineTemplate and a NodePool", s.offer},
		{fmt.Sprintf("create %d Pods: spread over zones, only on spot, or with much memory", manyPods), s.scaleOut},
		{fmt.Sprintf("scale to %d Pods: Karpenter consolidates the nodes", fewPods), s.scaleIn},
		{"delete everything", s.deleteAll},
	} {
		s.progress.step(step.text)
		if err := step.do(ctx); err != nil {
			s.progress.done(s.now.String())
			return fmt.Errorf("step %q: %w", step.text, err)
		}
		s.progress.done(s.now.String())
	}
	return nil
}

func (s *story) offer(ctx context.Context) error {
	for _, name := range manifests.Offer {
		if err := s.create(ctx, name); err != nil {
			return err
		}
	}
	return s.until(ctx, "the NodePool to be ready", readyWithin, func(ctx context.Context) (bool, error) {
		pool := &karpv1.NodePool{}
		err := s.Workload.Get(ctx, client.ObjectKey{Name: "general"}, pool)
		return pool.StatusConditions().IsTrue("Ready"), err
	})
}

// create creates the objects of a manifest.
func (s *story) create(ctx context.Context, name string) error {
	content, err := manifests.Read(name, s.kind)
	if err != nil {
		return err
	}
	if err := s.Create(ctx, content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (s *story) scaleOut(ctx context.Context) error {
	if err := s.create(ctx, manifests.Deployments); err != nil {
		return err
	}
	if err := s.until(ctx, fmt.Sprintf("%d Pods to run", manyPods), runWithin, func(context.Context) (bool, error) {
		return s.now.Running == manyPods && s.now.Pods == manyPods, nil
	}); err != nil {
		return err
	}
	if err := s.showResources(ctx); err != nil {
		return err
	}
	return s.showTemplates(ctx)
}

func (s *story) scaleIn(ctx context.Context) error {
	before := s.now.Nodes
	deployments, err := s.deployments(ctx)
	if err != nil {
		return err
	}
	for i := range deployments {
		deployment := &deployments[i]
		stored := deployment.DeepCopy()
		deployment.Spec.Replicas = new(*deployment.Spec.Replicas * fewPods / manyPods)
		if err := s.Workload.Patch(ctx, deployment, client.MergeFrom(stored)); err != nil {
			return err
		}
	}
	// A third of the pods fits on half of the nodes, whichever nodes Karpenter launches.
	if err := s.until(ctx, fmt.Sprintf("%d Pods to run on half of the %d Nodes or fewer", fewPods, before), consolidateWithin, func(context.Context) (bool, error) {
		return s.now.Running == fewPods && s.now.Pods == fewPods && s.now.Nodes <= before/2 && s.now.Machines == s.now.Nodes && s.now.Claims == s.now.Nodes, nil
	}); err != nil {
		return err
	}
	if err := s.showResources(ctx); err != nil {
		return err
	}
	if s.seen, err = s.look(ctx); err != nil {
		return err
	}
	if s.most.Resources < 3 || s.most.Resources >= s.most.Nodes {
		return fmt.Errorf("expected at least 3 %s objects and fewer than Nodes, because each one serves many NodeClaims; found %d for %d Nodes", s.kind, s.most.Resources, s.most.Nodes)
	}
	if s.most.templates == 0 || s.most.templates > s.most.Resources {
		return fmt.Errorf("each %s should have a generated template, which it can share; found %d templates for %d", s.kind, s.most.templates, s.most.Resources)
	}
	return nil
}

func (s *story) deleteAll(ctx context.Context) error {
	deployments, err := s.deployments(ctx)
	if err != nil {
		return err
	}
	for i := range deployments {
		if err := s.Workload.Delete(ctx, &deployments[i], client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	nothing := func() bool { return s.now.Claims+s.now.Nodes+s.now.Machines+s.now.Replicas+s.now.Pods == 0 }
	if err := s.until(ctx, "no Pod, NodeClaim, Node, Machine or replica to be left", goneWithin, func(context.Context) (bool, error) {
		return nothing(), nil
	}); err != nil {
		return err
	}
	named := metav1.ObjectMeta{Name: "general"}
	for _, object := range []client.Object{&karpv1.NodePool{ObjectMeta: named}, &v1alpha1.KarpenterMachineTemplate{ObjectMeta: named}, &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: manifests.CatalogName}}} {
		if err := s.Workload.Delete(ctx, object); err != nil {
			return err
		}
	}
	// The empty resources were kept for reuse; without their template they are deleted with what was generated for
	// them.
	return s.until(ctx, fmt.Sprintf("no %s and no generated template to be left", s.kind), goneWithin, func(context.Context) (bool, error) {
		return s.now.Resources+s.now.templates == 0 && nothing(), nil
	})
}

func (s *story) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	err := s.Workload.List(ctx, list, client.MatchingLabels{"demo": "true"})
	return list.Items, err
}

// until waits for the result of a step, and shows the progress.
func (s *story) until(ctx context.Context, what string, within time.Duration, reached func(context.Context) (bool, error)) error {
	return s.Await(ctx, within, what, func(ctx context.Context) (bool, string, error) {
		now, err := s.count(ctx)
		if err != nil {
			return false, err.Error(), nil
		}
		s.now, s.most = now, s.most.atLeast(now)
		s.progress.show(now.String())
		done, err := reached(ctx)
		if err != nil {
			return false, err.Error(), nil
		}
		return done, now.String(), nil
	})
}
