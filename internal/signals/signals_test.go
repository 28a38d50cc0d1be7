// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestParse(t *testing.T) {
	const others = "is set for other reasons"
	for name, tc := range map[string]struct {
		setting string
		signals int
		problem string
	}{
		"empty":                    {setting: "", signals: len(defaults)},
		"the default":              {setting: "default", signals: len(defaults)},
		"none":                     {setting: "none"},
		"a taint":                  {setting: "taint:example.com/ends", signals: 1},
		"a taint with all":         {setting: "taint:example.com/ends=spot:NoExecute", signals: 1},
		"a taint to prefer others": {setting: "taint:ends:PreferNoSchedule", signals: 1},
		"a taint of any domain":    {setting: "taint:ends:NoSchedule", signals: 1},
		"a condition":              {setting: "condition:Ends=True", signals: 1},
		"a condition of a domain":  {setting: "condition:example.com/Healthy=False", signals: 1},
		"several":                  {setting: "default, taint:example.com/ends ,condition:Ends=Unknown", signals: len(defaults) + 2},
		"out of service":           {setting: "taint:node.kubernetes.io/out-of-service", signals: 1},
		"neither":                  {setting: "example.com/ends", problem: `interruption signal "example.com/ends": write taint:KEY`},
		"an empty entry":           {setting: "default,", problem: `interruption signal "": write`},
		"none of several":          {setting: "default,none", problem: `interruption signal "none": write`},
		"a taint without key":      {setting: "taint:", problem: `the key "" is invalid`},
		"an invalid key":           {setting: "taint:a b", problem: `the key "a b" is invalid`},
		"an invalid value":         {setting: "taint:a=b c", problem: `the value "b c" is invalid`},
		"an invalid effect":        {setting: "taint:a:Evict", problem: `the effect "Evict" is not NoSchedule`},
		"an empty effect":          {setting: "taint:a:", problem: `the effect "" is not NoSchedule`},
		"a condition without type": {setting: "condition:=True", problem: `the type "" is invalid`},
		"without status":           {setting: "condition:Ends", problem: `the status "" is not True`},
		"an invalid status":        {setting: "condition:Ends=true", problem: `the status "true" is not True`},
		"a kubelet's condition":    {setting: "condition:Ready=True", problem: "use Karpenter's feature gate NodeRepair"},
		"a pressure":               {setting: "condition:MemoryPressure=False", problem: "so Nodes that run would be replaced"},
		"a disk's pressure":        {setting: "condition:DiskPressure=True", problem: "so Nodes that run would be replaced"},
		"a pressure of processes":  {setting: "condition:PIDPressure=True", problem: "so Nodes that run would be replaced"},
		"no network":               {setting: "condition:NetworkUnavailable=True", problem: "so Nodes that run would be replaced"},
		"not ready":                {setting: "taint:node.kubernetes.io/not-ready", problem: others},
		"cordoned":                 {setting: "taint:node.kubernetes.io/unschedulable:NoSchedule", problem: others},
		"new to the cloud":         {setting: "taint:node.cloudprovider.kubernetes.io/uninitialized", problem: others},
		"new to Cluster API":       {setting: "taint:node.cluster.x-k8s.io/uninitialized", problem: others},
		"new to Karpenter":         {setting: "taint:karpenter.sh/unregistered", problem: others},
	} {
		t.Run(name, func(t *testing.T) {
			signals, err := Parse(tc.setting)
			switch {
			case tc.problem == "" && err != nil:
				t.Errorf("got error %v", err)
			case tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)):
				t.Errorf("got error %v, want one with %q", err, tc.problem)
			case len(signals) != tc.signals:
				t.Errorf("got %d signals, want %d", len(signals), tc.signals)
			}
		})
	}
}

func TestOf(t *testing.T) {
	taint := func(key, value string, effect corev1.TaintEffect) *corev1.Node {
		return &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}, {Key: key, Value: value, Effect: effect}}}}
	}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: kind, Status: status, Reason: "Why", Message: "at 14:05"},
		}}}
	}
	for name, tc := range map[string]struct {
		setting string
		node    *corev1.Node
		want    string
	}{
		"no signal":              {setting: "default", node: taint("other", "", corev1.TaintEffectNoExecute)},
		"AWS, spot":              {setting: "default", node: taint("aws-node-termination-handler/spot-itn", "event-1", corev1.TaintEffectNoSchedule), want: "taint aws-node-termination-handler/spot-itn=event-1:NoSchedule"},
		"AWS, a recommendation":  {setting: "default", node: taint("aws-node-termination-handler/rebalance-recommendation", "event-1", corev1.TaintEffectNoSchedule)},
		"Google Cloud":           {setting: "default", node: taint("cloud.google.com/impending-node-termination", "", corev1.TaintEffectNoSchedule), want: "taint cloud.google.com/impending-node-termination:NoSchedule"},
		"Azure":                  {setting: "default", node: taint("aks-node-termination-handler/preempt", "e", corev1.TaintEffectNoSchedule), want: "taint aks-node-termination-handler/preempt=e:NoSchedule"},
		"AKS":                    {setting: "default", node: condition("PreemptionScheduled", corev1.ConditionTrue), want: "condition PreemptionScheduled=True: at 14:05"},
		"AKS, nothing scheduled": {setting: "default", node: condition("PreemptionScheduled", corev1.ConditionFalse)},
		"AKS, perhaps a freeze":  {setting: "default", node: condition("VMEventScheduled", corev1.ConditionTrue)},
		"none":                   {setting: "none", node: condition("PreemptionScheduled", corev1.ConditionTrue)},
		"any value":              {setting: "taint:a", node: taint("a", "b", corev1.TaintEffectNoSchedule), want: "taint a=b:NoSchedule"},
		"its value":              {setting: "taint:a=b", node: taint("a", "b", corev1.TaintEffectNoSchedule), want: "taint a=b:NoSchedule"},
		"another value":          {setting: "taint:a=b", node: taint("a", "c", corev1.TaintEffectNoSchedule)},
		"the empty value":        {setting: "taint:a=", node: taint("a", "c", corev1.TaintEffectNoSchedule)},
		"its effect":             {setting: "taint:a:NoExecute", node: taint("a", "", corev1.TaintEffectNoExecute), want: "taint a:NoExecute"},
		"another effect":         {setting: "taint:a:NoExecute", node: taint("a", "", corev1.TaintEffectNoSchedule)},
		"no message": {setting: "condition:Ends=True", want: "condition Ends=True: Soon", node: &corev1.Node{Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: "Ends", Status: corev1.ConditionTrue, Reason: "Soon"}},
		}}},
		"the second signal": {setting: "condition:A=True,taint:a", node: taint("a", "", corev1.TaintEffectNoSchedule), want: "taint a:NoSchedule"},
	} {
		t.Run(name, func(t *testing.T) {
			signals, err := Parse(tc.setting)
			if err != nil {
				t.Fatal(err)
			}
			if got := signals.Of(tc.node); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// These are the taints and conditions as the handlers' sources have them. A Node of which a handler announces
// the end must not be missed because of a letter.
func TestDefaultsAreTheHandlersWords(t *testing.T) {
	var nodes []*corev1.Node
	for _, key := range []string{
		// aws/aws-node-termination-handler: pkg/node/node.go, SpotInterruptionTaint and the others.
		"aws-node-termination-handler/spot-itn",
		"aws-node-termination-handler/scheduled-maintenance",
		"aws-node-termination-handler/asg-lifecycle-termination",
		// GoogleCloudPlatform/k8s-node-termination-handler: deploy/k8s.yaml, --taint.
		"cloud.google.com/impending-node-termination",
		// maksim-paskal/aks-node-termination-handler: pkg/api/api.go, taintKeyPrefix and the event in lower case.
		"aks-node-termination-handler/preempt",
		"aks-node-termination-handler/terminate",
	} {
		nodes = append(nodes, &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Value: "event-1", Effect: corev1.TaintEffectNoSchedule}}}})
	}
	// Azure/karpenter-provider-azure: pkg/controllers/interruption, ConditionTypePreemptionScheduled.
	nodes = append(nodes, &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "PreemptionScheduled", Status: corev1.ConditionTrue}}}})
	for _, node := range nodes {
		if defaults.Of(node) == "" {
			t.Errorf("no default signal announces the end of a Node with taints %v and conditions %v", node.Spec.Taints, node.Status.Conditions)
		}
	}
	if len(defaults) != len(nodes) {
		t.Errorf("there are %d default signals, and %d are tested", len(defaults), len(nodes))
	}
}
