// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Kind is a kind of object in the history.
type Kind string

// The kinds of the history.
const (
	NodeClaim         Kind = "NodeClaim"
	Machine           Kind = "Machine"
	MachineSet        Kind = "MachineSet"
	MachineDeployment Kind = "MachineDeployment"
	MachinePool       Kind = "MachinePool"
	SimulatedMachine  Kind = "SimulatedMachine"
)

// prefixes are the key prefixes of the kinds in etcd.
var prefixes = map[string]Kind{
	"/registry/cluster.x-k8s.io/machinedeployments/":               MachineDeployment,
	"/registry/cluster.x-k8s.io/machinepools/":                     MachinePool,
	"/registry/cluster.x-k8s.io/machines/":                         Machine,
	"/registry/cluster.x-k8s.io/machinesets/":                      MachineSet,
	"/registry/infrastructure.cluster.x-k8s.io/simulatedmachines/": SimulatedMachine,
	"/registry/karpenter.sh/nodeclaims/":                           NodeClaim,
}

// ManagementPrefix is the prefix of the keys of a management cluster that has the same etcd as its workload cluster. The
// range below includes it.
const ManagementPrefix = "/registry/in-management"

// The range of keys with all of these. One range is one watch, and only within a watch are changes in order.
const (
	firstKey = "/registry/cluster.x-k8s.io/"
	endKey   = "/registry/karpenter.sh/nodeclaims0"
)

// Object is what the checks need to know of an object.
type Object struct {
	Name    string
	UID     types.UID
	Created time.Time

	// Deleted is the deletion timestamp; zero unless the object is being deleted.
	Deleted time.Time

	// ProviderID is a NodeClaim's in its status, a Machine's and a SimulatedMachine's in its spec.
	ProviderID string

	// Node is the Node of a NodeClaim, Machine or SimulatedMachine.
	Node string

	// Claim and ClaimName are the link of a Machine.
	Claim     types.UID
	ClaimName string

	// Spare is whether the Machine was unlinked and can serve the next claim.
	Spare bool

	// Chosen is whether the operator has marked the Machine for deletion.
	Chosen bool

	// Set is the name of the MachineSet that controls a Machine.
	Set string

	// Replicas are those of a MachineSet, MachineDeployment or MachinePool.
	Replicas int32

	// Failed is the reason for which a Machine's infrastructure, or a SimulatedMachine, is not ready. The reason
	// decides whether it has failed or is just booting.
	Failed string

	// Finalizers delay the removal of the object.
	Finalizers []string

	// True are the conditions of a NodeClaim that are true.
	True []string
}

// Live reports whether the object exists and is not being deleted.
func (o *Object) Live() bool { return o != nil && o.Deleted.IsZero() && !o.Chosen }

// Change is one write of one object.
type Change struct {
	// Revision is the revision in etcd, which is the object's resourceVersion.
	Revision int64

	// Seen is when the change reached this process.
	Seen time.Time

	Kind Kind

	// Key returns the object's name, after its namespace if it has one.
	Key string

	// Object is what was written; nil if the object was removed.
	Object *Object
}

// kindOf splits a key of etcd.
func kindOf(key string) (Kind, string, bool) {
	if rest, is := strings.CutPrefix(key, ManagementPrefix); is {
		key = "/registry" + rest
	}
	for prefix, kind := range prefixes {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			return kind, name, true
		}
	}
	return "", "", false
}

// stored is the part of an object, of any of the kinds, that is decoded.
type stored struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		ProviderID string `json:"providerID"`
		Replicas   int32  `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ProviderID string `json:"providerID"`
		NodeName   string `json:"nodeName"`
		NodeRef    struct {
			Name string `json:"name"`
		} `json:"nodeRef"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// decode reads an object as etcd has it.
func decode(kind Kind, value []byte) (*Object, error) {
	s := &stored{}
	if err := json.Unmarshal(value, s); err != nil {
		return nil, fmt.Errorf("reading a %s from etcd: %w", kind, err)
	}
	meta := &s.Metadata
	object := &Object{
		Name: meta.Name, UID: meta.UID, Created: meta.CreationTimestamp.Time, Finalizers: meta.Finalizers,
		ProviderID: s.Spec.ProviderID, Node: s.Status.NodeName, Replicas: s.Spec.Replicas,
	}
	if meta.DeletionTimestamp != nil {
		object.Deleted = meta.DeletionTimestamp.Time
	}
	switch kind {
	case NodeClaim:
		object.ProviderID = s.Status.ProviderID
		for _, condition := range s.Status.Conditions {
			if condition.Status == metav1.ConditionTrue {
				object.True = append(object.True, condition.Type)
			}
		}
	case Machine:
		object.Node = s.Status.NodeRef.Name
		object.Claim = types.UID(meta.Labels[v1alpha1.NodeClaimUIDLabel])
		object.ClaimName = meta.Annotations[v1alpha1.NodeClaimAnnotation]
		_, object.Spare = meta.Annotations[v1alpha1.SpareSinceAnnotation]
		_, object.Chosen = meta.Annotations[v1alpha1.MarkedForDeletionAtAnnotation]
		object.Failed = reason(s.Status.Conditions, clusterv1.InfrastructureReadyCondition)
		if owner := metav1.GetControllerOf(meta); owner != nil && owner.Kind == string(MachineSet) {
			object.Set = owner.Name
		}
	case SimulatedMachine:
		object.Failed = reason(s.Status.Conditions, clusterv1.ReadyCondition)
	}
	return object, nil
}

// reason returns the reason of a condition that is False.
func reason(conditions []metav1.Condition, of string) string {
	for _, condition := range conditions {
		if condition.Type == of && condition.Status == metav1.ConditionFalse {
			return condition.Reason
		}
	}
	return ""
}
