// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/karpenter/pkg/apis"
)

const (
	// Default is the setting that contains the signals of the common handlers. It can be one of several
	// entries.
	Default = "default"
	// None is the setting without signals.
	None = "none"
)

// defaults are the signals of the common handlers. Each announces that an instance ends, or is at least
// restarted without its Pods.
//
// Handlers can set more that is not among them: a recommendation
// (aws-node-termination-handler/rebalance-recommendation), or an event that an instance survives
// (VMEventScheduled of AKS, which is also True before a freeze of some seconds).
var defaults = mustParse(
	// aws-node-termination-handler with taintNode (its pkg/node/node.go): an interruption of spot, a
	// maintenance or retirement, and the end of an instance by its Auto Scaling group.
	"taint:aws-node-termination-handler/spot-itn",
	"taint:aws-node-termination-handler/scheduled-maintenance",
	"taint:aws-node-termination-handler/asg-lifecycle-termination",
	// The handler of Google Cloud (GoogleCloudPlatform/k8s-node-termination-handler: deploy/k8s.yaml),
	// and GKE's.
	"taint:cloud.google.com/impending-node-termination",
	// maksim-paskal/aks-node-termination-handler for any Azure virtual machine (its pkg/api/api.go,
	// getTaintKey), for the scheduled events Preempt and Terminate.
	"taint:aks-node-termination-handler/preempt",
	"taint:aks-node-termination-handler/terminate",
	// The node problem detector of AKS (karpenter-provider-azure: pkg/cloudprovider/cloudprovider.go).
	"condition:PreemptionScheduled=True",
)

// Signals are the taints and conditions that announce the end of an instance.
type Signals []Signal

// Signal is a taint or a condition.
type Signal struct {
	// Taint is nil if the signal is a condition. Without an effect, it can have any effect.
	Taint *corev1.Taint
	// AnyValue reports whether the taint can have any value.
	AnyValue bool
	// Condition is the type of a condition of Nodes, and Status the status that announces the end.
	Condition corev1.NodeConditionType
	Status    corev1.ConditionStatus
}

// Parse returns the signals of a setting: entries that are separated by commas, each of which is
// taint:KEY[=VALUE][:EFFECT], condition:TYPE=STATUS, or default. An empty setting is default, and the
// setting none has no signals.
func Parse(setting string) (Signals, error) {
	switch strings.TrimSpace(setting) {
	case "":
		return defaults, nil
	case None:
		return nil, nil
	}
	var all Signals
	for entry := range strings.SplitSeq(setting, ",") {
		entry = strings.TrimSpace(entry)
		if entry == Default {
			all = append(all, defaults...)
			continue
		}
		parsed, err := parseEntry(entry)
		if err != nil {
			return nil, fmt.Errorf("interruption signal %q: %w", entry, err)
		}
		all = append(all, parsed)
	}
	return all, nil
}

func mustParse(entries ...string) Signals {
	return lo.Map(entries, func(entry string, _ int) Signal { return lo.Must(parseEntry(entry)) })
}

func parseEntry(entry string) (Signal, error) {
	if text, is := strings.CutPrefix(entry, "taint:"); is {
		return parseTaint(text)
	}
	if text, is := strings.CutPrefix(entry, "condition:"); is {
		return parseCondition(text)
	}
	return Signal{}, fmt.Errorf("write taint:KEY[=VALUE][:EFFECT], condition:TYPE=STATUS or %s", Default)
}

func parseTaint(text string) (Signal, error) {
	text, effect, hasEffect := strings.Cut(text, ":")
	key, value, hasValue := strings.Cut(text, "=")
	taint := &corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return Signal{}, fmt.Errorf("the key %q is invalid: %s", key, problems[0])
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return Signal{}, fmt.Errorf("the value %q is invalid: %s", value, problems[0])
	}
	if hasEffect && !lo.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, taint.Effect) {
		return Signal{}, fmt.Errorf("the effect %q is not NoSchedule, PreferNoSchedule or NoExecute", effect)
	}
	if reservedTaint(key) {
		return Signal{}, fmt.Errorf("the taint %s is set for other reasons, so Nodes that run would be replaced", key)
	}
	return Signal{Taint: taint, AnyValue: !hasValue}, nil
}

func parseCondition(text string) (Signal, error) {
	kind, status, _ := strings.Cut(text, "=")
	parsed := Signal{Condition: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status)}
	if problems := validation.IsQualifiedName(kind); len(problems) > 0 {
		return Signal{}, fmt.Errorf("the type %q is invalid: %s", kind, problems[0])
	}
	if !lo.Contains([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}, parsed.Status) {
		return Signal{}, fmt.Errorf("the status %q is not True, False or Unknown", status)
	}
	if lo.Contains(kubeletConditions, parsed.Condition) {
		return Signal{}, fmt.Errorf("the kubelet sets the condition %s for other reasons, so Nodes that run would be replaced: use Karpenter's feature gate NodeRepair", kind)
	}
	return parsed, nil
}

// kubeletConditions are the conditions that each Node has.
var kubeletConditions = []corev1.NodeConditionType{
	corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable,
}

// reservedTaint reports whether Kubernetes, Cluster API or Karpenter sets a taint on Nodes that are new,
// not Ready or cordoned.
func reservedTaint(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return key != corev1.TaintNodeOutOfService && lo.Contains([]string{"node.kubernetes.io", "node.cluster.x-k8s.io", apis.Group}, domain) ||
		key == "node.cloudprovider.kubernetes.io/uninitialized"
}

// Of returns the first signal that a Node has, in words such as "taint example.com/ends:NoSchedule";
// empty if it has none.
func (s Signals) Of(node *corev1.Node) string {
	for _, signal := range s {
		if found := signal.of(node); found != "" {
			return found
		}
	}
	return ""
}

func (s Signal) of(node *corev1.Node) string {
	if s.Taint != nil {
		for i := range node.Spec.Taints {
			if taint := &node.Spec.Taints[i]; s.matches(taint) {
				return "taint " + taint.ToString()
			}
		}
		return ""
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == s.Condition && condition.Status == s.Status {
			return fmt.Sprintf("condition %s=%s: %s", condition.Type, condition.Status, cmp.Or(condition.Message, condition.Reason))
		}
	}
	return ""
}

func (s Signal) matches(taint *corev1.Taint) bool {
	return taint.Key == s.Taint.Key &&
		(s.AnyValue || taint.Value == s.Taint.Value) &&
		(s.Taint.Effect == "" || taint.Effect == s.Taint.Effect)
}
