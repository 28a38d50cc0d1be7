// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// clusterAPIDomain is the domain of the labels and annotations with which Cluster API and its providers
// decide. With cluster.x-k8s.io/control-plane on a worker, Cluster API writes the private keys of the Cluster
// into its bootstrap data (bootstrap/kubeadm/controllers/kubeadmconfig_controller.go), and infrastructure
// providers add it to the load balancer of the API server. Others pause a Machine, block its deletion, or
// make it part of a topology or of another owner.
const clusterAPIDomain = "cluster.x-k8s.io"

// metal3Domain is the domain of metal3.io/BareMetalHost. Cluster API copies the annotations of Machines to those of
// providers, and with this one, a Metal3Machine takes the host that it names, also one in use.
const metal3Domain = "metal3.io"

var (
	// settableLabels are the domains of Cluster API's labels that templates can set. They are those that it
	// copies to Nodes.
	settableLabels = []string{clusterv1.ManagedNodeLabelDomain}
	// settableAnnotations are the annotations of Cluster API that templates can set on Machines.
	settableAnnotations = lifecycle.DrainAnnotations
	// settableOnResources are those that templates can set on MachineDeployments and MachinePools.
	settableOnResources = []string{clusterv1.MachineSetSkipPreflightChecksAnnotation}
	// reservedDomains are those of the labels of Machines and the annotations of MachineDeployments that
	// controllers own.
	reservedDomains = []string{clusterAPIDomain, "clusters.x-k8s.io", "karpenter.sh", metal3Domain}
)

// isIn reports whether the domain of a key is one of the given domains, or below one.
func isIn(key string, domains ...string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && slices.ContainsFunc(domains, func(of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) })
}

// reservedLabel reports whether a template may not set a label on Machines.
func reservedLabel(key string) bool {
	return isIn(key, reservedDomains...) && !isIn(key, settableLabels...)
}

// reservedAnnotation reports whether a template may not set an annotation on Machines.
func reservedAnnotation(key string) bool {
	return isIn(key, clusterAPIDomain, metal3Domain) && !slices.Contains(settableAnnotations, key)
}

// reservedOnResource reports whether a template may not set an annotation on a MachineDeployment or
// MachinePool.
func reservedOnResource(key string) bool {
	return isIn(key, reservedDomains...) && !slices.Contains(settableOnResources, key)
}

// Fields of templates that only base templates can set, in lower case.
var (
	// reservedFields are names or lists of names. Objects with such a name are something else, such as settings.
	reservedFields = slices.Concat(existing, powers)
	// existing identify an existing instance or another owner. With them, a generated Machine could take over an
	// instance, and delete it, or be created elsewhere. The last ones are those of Tinkerbell, Proxmox and MAAS.
	existing = []string{"providerid", "provideridlist", "instanceid", "instanceuuid", "ownerreferences", "finalizers", "hardwarename", "virtualmachineid", "systemid"}
	// powers are more than those of a worker. generateType of Talos makes one a control plane, with the private keys of
	// the Cluster in its bootstrap data. The provider of vSphere sends the credentials of the Cluster to server, if
	// its certificate has the thumbprint.
	powers = []string{"generatetype", "server", "thumbprint"}
	// host are fields of Pods and containers that some providers create in the management cluster, such as Docker's and
	// k0smotron's. With them, these could do what their host can.
	host = []string{"hostpath", "hostnetwork", "hostpid", "hostipc", "privileged"}
)

// reservedIn returns the reserved fields, labels and annotations in the spec of an object, by where they are
// and what they have. Indexes of lists are left out, because patches move items.
func reservedIn(object *unstructured.Unstructured, cluster types.NamespacedName) map[string]string {
	spec := specOf(object)
	s := search{cluster: cluster, objects: object.GroupVersionKind().Group == reference.InfrastructureGroup, found: map[string]string{}}
	if strings.HasSuffix(object.GetKind(), clusterv1.TemplateSuffix) {
		template, _ := spec["template"].(map[string]any)
		for key, value := range lo.OmitByKeys(template, ofTemplate) {
			s.add("spec.template."+key, value)
		}
	}
	s.in("spec", spec)
	return s.found
}

// ofTemplate are the fields of what is made from a template that patches can set. Cluster API would also take others, such
// as apiVersion and kind, so that it creates another object than the template is for (controllers/external/util.go, GenerateTemplate).
var ofTemplate = []string{"metadata", "spec"}

// search looks for what is reserved.
type search struct {
	cluster types.NamespacedName
	// objects reports whether whole objects are reserved, which is so in infrastructure templates.
	objects bool
	found   map[string]string
}

func (s search) add(at string, value any) { s.found[at+"="+text(value)] = at }

func (s search) in(at string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if what, name := wholeObject(value); s.objects && what != "" {
			s.found[at+"="+what+"/"+name] = fmt.Sprintf("%s (%s)", at, what)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := at + "." + key
			if reservedValue(key, value[key], s.cluster) {
				s.add(at, value[key])
			}
			for _, metadata := range reservedKeys(key, value[key]) {
				s.found[at+"."+metadata+"="+text(value[key].(map[string]any)[metadata])] = fmt.Sprintf("%s[%s]", at, metadata)
			}
			s.in(at, value[key])
		}
	case []any:
		for _, item := range value {
			s.in(at+"[]", item)
		}
	}
}

// wholeObject returns the kind and the name of an object inside a spec; empty if it is only a reference, or none. Providers
// that have fields with objects create these, as Azure's does with spec.resources of its ASO kinds, whatever their kinds are.
func wholeObject(value map[string]any) (what, name string) {
	kind, hasKind := value["kind"].(string)
	apiVersion, hasVersion := value["apiVersion"].(string)
	if !hasKind || !hasVersion || lo.Every(ofReference, slices.Collect(maps.Keys(value))) {
		return "", ""
	}
	name, _, _ = unstructured.NestedString(value, "metadata", "name")
	return kind + " of " + apiVersion, name
}

// ofReference are the fields of a reference to an object.
var ofReference = []string{"apiVersion", "kind", "apiGroup", "name", "namespace", "uid", "resourceVersion", "fieldPath"}

// reservedValue reports whether a field has a value that a template may not set.
func reservedValue(key string, value any, cluster types.NamespacedName) bool {
	switch lower := strings.ToLower(key); {
	case slices.Contains(reservedFields, lower):
		_, isObject := value.(map[string]any)
		return !isObject
	case slices.Contains(host, lower):
		return value != false
	case lower == "clustername":
		return value != cluster.Name
	case strings.HasSuffix(lower, "namespace"):
		name, isName := value.(string)
		return isName && name != cluster.Namespace
	}
	return false
}

// reservedTag reports whether a template may not set a tag of an instance. With tags in these domains, providers and cloud
// controllers decide to which Cluster something belongs: kubernetes.io/cluster/NAME and sigs.k8s.io/… of AWS, and the same
// with underscores of Azure.
func reservedTag(key string) bool {
	domain := strings.FieldsFunc(key, func(r rune) bool { return r == '/' || r == '_' })
	return len(domain) > 1 && (strings.HasSuffix(domain[0], "k8s.io") || strings.HasSuffix(domain[0], "kubernetes.io"))
}

// reservedKeys returns the labels, annotations or tags in a field that a template may not set.
func reservedKeys(field string, value any) []string {
	entries, _ := value.(map[string]any)
	var reserved func(string) bool
	switch field {
	case "labels":
		reserved = reservedLabel
	case "annotations":
		reserved = reservedAnnotation
	case "additionalTags":
		reserved = reservedTag
	}
	if reserved == nil {
		return nil
	}
	return lo.Filter(slices.Sorted(maps.Keys(entries)), func(key string, _ int) bool { return reserved(key) })
}

// text returns a value of an object's spec as text.
func text(value any) string {
	encoded := lo.Must(json.Marshal(value)) // it was decoded from JSON
	return string(encoded)
}
