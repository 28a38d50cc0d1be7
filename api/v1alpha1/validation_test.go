// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var (
	apiServer client.Client
	// apiConfig is how to reach the same with another client.
	apiConfig *rest.Config
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	env := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	// This also stops an API server that has started but rejects a CRD.
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintf(os.Stderr, "stopping the API server: %v\n", err)
		}
	}()
	config, err := env.Start()
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting the API server (make test sets KUBEBUILDER_ASSETS): %v\n", err)
		return 1
	}
	apiConfig = config
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if apiServer, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

const validTemplate = `
apiVersion: karpenter.cluster.x-k8s.io/v1alpha1
kind: KarpenterMachineTemplate
metadata: {name: general}
spec:
  scalableResource: {kind: MachineDeployment, emptyTTLSeconds: 1800}
  template:
    metadata: {labels: {team: platform}}
    spec:
      version: v1.36.3
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: workers}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: workers}
  kubelet: {maxPods: 110, systemReserved: {cpu: 100m, memory: 200Mi}, evictionHard: {memory.available: 5%}}
  catalogRefs: [{name: general}]
`

const validCatalog = `
apiVersion: karpenter.cluster.x-k8s.io/v1alpha1
kind: InstanceTypeCatalog
metadata: {name: general}
spec:
  instanceTypes:
  - name: m5.large
    capacity: {cpu: "2", memory: 8Gi, ephemeral-storage: 80Gi}
    labels: {kubernetes.io/arch: amd64}
    offerings:
    - {zones: [us-east-1a], capacityType: on-demand, price: "0.096"}
    - {zones: [us-east-1a], capacityType: spot, price: "0.035"}
`

// ofCatalog matches the paths of fields that catalogs have.
var ofCatalog = regexp.MustCompile(`^spec/(instanceTypes|offerings|pricing)`)

// edit returns the valid template or, for a field of catalogs, the valid catalog with the
// JSON-merge-like change applied: path segments are map keys or list indices; a nil value
// removes the field.
func edit(t *testing.T, path string, value any) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	valid := validTemplate
	if ofCatalog.MatchString(path) {
		valid = validCatalog
	}
	if err := yaml.Unmarshal([]byte(valid), &object); err != nil {
		t.Fatal(err)
	}
	if path != "" {
		set(t, object, strings.Split(path, "/"), value)
	}
	return &unstructured.Unstructured{Object: object}
}

func set(t *testing.T, at any, path []string, value any) {
	t.Helper()
	switch node := at.(type) {
	case map[string]any:
		if len(path) > 1 {
			set(t, node[path[0]], path[1:], value)
		} else if value == nil {
			delete(node, path[0])
		} else {
			node[path[0]] = value
		}
	case []any:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err != nil {
			t.Fatal(err)
		}
		if len(path) > 1 {
			set(t, node[i], path[1:], value)
		} else {
			node[i] = value
		}
	default:
		t.Fatalf("no such path: %v in %T", path, at)
	}
}

func instanceType(name string, offerings ...any) map[string]any {
	return map[string]any{"name": name, "capacity": map[string]any{"cpu": "2", "memory": "8Gi"}, "offerings": offerings}
}

func offering(zone, capacityType, price string) map[string]any {
	return map[string]any{"zone": zone, "capacityType": capacityType, "price": price}
}

var reservedAndLimited = map[string]any{
	"capacityType": "reserved", "price": "0", "maxMachines": int64(1), "reservation": map[string]any{"id": "cr-1", "count": int64(2)},
}

func failureDomain(zone, failureDomain string) map[string]any {
	return map[string]any{"zone": zone, "failureDomain": failureDomain}
}

// factors returns a pricing with pairs of a capacity type and its factor.
func factors(pairs ...string) map[string]any {
	var factors []any
	for pair := range slices.Chunk(pairs, 2) {
		factors = append(factors, map[string]any{"capacityType": pair[0], "factor": pair[1]})
	}
	return map[string]any{"factors": factors}
}

const (
	resourceAnnotations      = "spec/scalableResource/annotations"
	resourceAnnotationsField = "spec.scalableResource.annotations"
	year                     = int64(31536000) // in seconds
	skipChecks               = "machineset.cluster.x-k8s.io/skip-preflight-checks"
)

func annotations(count int) map[string]any {
	annotations := map[string]any{}
	for i := range count {
		annotations[fmt.Sprintf("example.com/%d", i)] = "x"
	}
	return annotations
}

// The metadata of Machines is that of objects, so the API server refuses it before Cluster API does.
func TestMetadataOfMachines(t *testing.T) {
	many := map[string]any{}
	for i := range 65 {
		many[fmt.Sprint("x", i)] = "x"
	}
	const labels, annotations = "spec/template/metadata/labels", "spec/template/metadata/annotations"
	for name, tc := range map[string]struct {
		path  string
		value any
		want  string // empty if the API server accepts it
	}{
		"labels":                   {labels, map[string]any{"team": "platform", "example.com/a_B.c": "", "node-role.kubernetes.io/worker": ""}, ""},
		"no labels":                {labels, map[string]any{}, "at least 1 properties"},
		"too many labels":          {labels, many, "at most 64"},
		"a label key with a space": {labels, map[string]any{"my team": "x"}, "each key must be a label key"},
		"a long label key":         {labels, map[string]any{strings.Repeat("a", 64): "x"}, "each key must be a label key"},
		"a long label value":       {labels, map[string]any{"team": strings.Repeat("a", 64)}, "may not be more than 63"},
		"annotations":              {annotations, map[string]any{"example.com/note": "{a b}", "note": strings.Repeat("x", 4096)}, ""},
		"an annotation key":        {annotations, map[string]any{"my note": "x"}, "each key must be an annotation key"},
		"a long annotation":        {annotations, map[string]any{"note": strings.Repeat("x", 4097)}, "at most 4096 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			object := edit(t, tc.path, tc.value)
			err := apiServer.Create(t.Context(), object, client.DryRunAll)
			if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// remediation returns a remediation with a template of a kind.
func remediation(group, kind string) map[string]any {
	return map[string]any{"templateRef": map[string]any{"apiGroup": group, "kind": kind, "name": "reboot"}}
}

func TestAccepted(t *testing.T) {
	device := map[string]any{
		"driver": "gpu.nvidia.com", "pool": "a", "name": "gpu", "count": int64(128), "allowMultipleAllocations": true,
		"attributes":       map[string]any{"a": map[string]any{"int": int64(0)}, "b": map[string]any{"bool": false}, "c": map[string]any{"string": ""}, "example.com/d": map[string]any{"version": "1.2.3"}},
		"sharedAttributes": map[string]any{"resource.kubernetes.io/pcieRoot": "a"},
		"capacity":         map[string]any{"memory": "80Gi"}, "requestPolicies": map[string]any{"memory": map[string]any{"default": "1Gi", "validRange": map[string]any{"min": "1Gi", "max": "4Gi", "step": "1Gi"}}},
		"consumesCounters": []any{map[string]any{"counterSet": "gpu", "counters": map[string]any{"slices": "1"}}},
	}
	for name, tc := range map[string]struct {
		path  string
		value any
	}{
		"the example":                       {},
		"no scalable resource":              {"spec/scalableResource", nil},
		"no kubelet":                        {"spec/kubelet", nil},
		"no instance types yet":             {"spec/catalogRefs", nil},
		"an offering of all instance types": {"spec/offerings", []any{offering("a", "spot", "1")}},
		"no default infrastructure":         {"spec/template/spec/infrastructureRef", nil},
		"bootstrap by secret":               {"spec/template/spec/bootstrap", map[string]any{"dataSecretName": "workers"}},
		"a MachineDeployment to follow":     {"spec/template", map[string]any{"from": map[string]any{"machineDeployment": "workers"}}},
		"an entry of a topology to follow":  {"spec/template", map[string]any{"from": map[string]any{"machineDeploymentTopology": "md-0"}}},
		"no version":                        {"spec/template/spec/version", nil},
		"infrastructure without zones":      {"spec/instanceTypes/0/offerings", []any{map[string]any{"price": "1"}}},
		"failure domains of other names":    {"spec/failureDomains", []any{failureDomain("eastus-1", "1"), failureDomain("eastus-2", "2")}},
		"a factor of each capacity type":    {"spec/pricing", factors("on-demand", "1", "spot", "0.35", "reserved", "0")},
		"all of pricing": {"spec/pricing", map[string]any{
			"power": map[string]any{"kilowattHour": "0.28", "factor": "1.4"}, "conversion": map[string]any{"currency": "EUR", "rate": "0.92"},
			"adjustments": []any{
				map[string]any{"name": "a", "discountPercent": "100", "requirements": []any{map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []any{"spot"}}, map[string]any{"key": "gpu", "operator": "DoesNotExist"}}},
				map[string]any{"name": "b", "surchargePerHour": "0"}, map[string]any{"name": "c", "interruption": map[string]any{"percentPerMonth": "12.5", "costHours": int64(24)}},
			}}},
		"own hardware":                        {"spec/instanceTypes/0/hardware", map[string]any{"watts": int64(450), "purchasePrice": "9000", "depreciationMonths": int64(48)}},
		"a price of zero":                     {"spec/instanceTypes/0/offerings/0/price", "0"},
		"a year":                              {"spec/launchTimeoutSeconds", year},
		"a rollout with its defaults":         {"spec/rollout", map[string]any{}},
		"a remediation":                       {"spec/remediation", remediation("infrastructure.cluster.x-k8s.io", "Metal3RemediationTemplate")},
		"a canary of 50":                      {"spec/rollout", map[string]any{"canary": int64(50)}},
		"a canary of 5%":                      {"spec/rollout", map[string]any{"canary": "5%", "soakSeconds": int64(0)}},
		"turns of both capacity types":        {"spec/spread", []any{turns("spot", int64(20)), turns("on-demand", int64(300))}},
		"turns of equal prices":               {"spec/spread", []any{turns("spot", int64(0))}},
		"no spare Machines":                   {"spec/spareTTLSeconds", int64(0)},
		"no empty resources":                  {"spec/scalableResource/emptyTTLSeconds", int64(0)},
		"quantities of all forms":             {"spec/instanceTypes/0/capacity", map[string]any{"cpu": "1500m", "memory": "1.5e10", "a": ".5", "b": "+12e6", "c": "9223372036854775807", "d": "123456789n", "e": "1E", "f": "7E"}},
		"volumes of two drivers":              {"spec/instanceTypes/0/volumeAttachmentLimits", map[string]any{"ebs.csi.aws.com": int64(26), "csi.vsphere.vmware.com": int64(0)}},
		"a GPU":                               {"spec/instanceTypes/0/capacity", map[string]any{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}},
		"a device":                            {"spec/instanceTypes/0/devices", []any{map[string]any{"driver": "gpu.nvidia.com"}}},
		"a device with everything":            {"spec/instanceTypes/0/devices", []any{device}},
		"counters of devices":                 {"spec/instanceTypes/0/deviceCounters", []any{map[string]any{"driver": "gpu.nvidia.com", "pool": "a", "name": "gpu", "count": int64(8), "counters": map[string]any{"slices": int64(7)}}}},
		"numbers as quantities":               {"spec/instanceTypes/0/capacity", map[string]any{"cpu": int64(8), "memory": int64(34359738368)}},
		"own labels":                          {"spec/instanceTypes/0/labels", map[string]any{"example.com/family": "m5", "topology.kubernetes.io/region": "us-east-1", "A": "", "a-1.b.example/x_Y.z": "v", strings.Repeat("a", 63): "x"}},
		"own infrastructure of one type":      {"spec/instanceTypes/0/infrastructureRef", map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSMachineTemplate", "name": "large"}},
		"eviction by quantity":                {"spec/kubelet/evictionHard", map[string]any{"memory.available": "500Mi", "nodefs.available": "10%"}},
		"deletion timeouts":                   {"spec/template/spec/deletion", map[string]any{"nodeDeletionTimeoutSeconds": int64(60)}},
		"the same zone in two capacity types": {"spec/instanceTypes/0/offerings", []any{offering("a", "on-demand", "1"), offering("a", "spot", "1")}},
		"1000 operations of patches":          {"spec/patches", manyPatches(10, 100)},
		"a skipped check":                     {resourceAnnotations, map[string]any{skipChecks: "ControlPlaneIsStable"}},
		"skipped checks":                      {resourceAnnotations, map[string]any{skipChecks: "All, KubeadmVersionSkew", "note": "", "example.com/a-b.c_d": "{}"}},
		"as many as fit": {"spec/instanceTypes", func() (types []any) {
			for i := range 1000 {
				types = append(types, instanceType(fmt.Sprintf("type-%d", i), offering("a", "spot", "1")))
			}
			return types
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			if err := apiServer.Create(context.Background(), edit(t, tc.path, tc.value), client.DryRunAll); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// turns returns an entry of spec.spread.
func turns(capacityType string, percent any) map[string]any {
	return map[string]any{"capacityType": capacityType, "maxPriceIncreasePercent": percent}
}

// manyPatches returns patches with operations.
func manyPatches(count, operations int) []any {
	var all, patches []any
	for range operations {
		all = append(all, map[string]any{"op": "remove", "path": "/spec/x"})
	}
	for range count {
		patches = append(patches, map[string]any{"target": "Infrastructure", "jsonPatches": all})
	}
	return patches
}

// adjustment returns pricing with one adjustment, which sets a field.
func adjustment(field string, value any) map[string]any {
	return map[string]any{"adjustments": []any{map[string]any{"name": "a", field: value}}}
}

// required returns pricing with one adjustment, which has a requirement.
func required(requirement map[string]any) map[string]any {
	return map[string]any{"adjustments": []any{map[string]any{"name": "a", "discountPercent": "5", "requirements": []any{requirement}}}}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		path  string
		value any
		want  []string // parts of the message: the field's path and what is wrong
	}{
		"a name too long for a label":          {"metadata/name", strings.Repeat("a", 64), []string{"metadata.name must have at most 63 characters"}},
		"no template":                          {"spec/template", nil, []string{"spec.template", "Required"}},
		"an unknown kind":                      {"spec/scalableResource/kind", "MachineSet", []string{"spec.scalableResource.kind", "supported values"}},
		"an emptyTTL that is a duration":       {"spec/scalableResource/emptyTTLSeconds", "30m", []string{"spec.scalableResource.emptyTTLSeconds", "must be of type integer"}},
		"an emptyTTL of two years":             {"spec/scalableResource/emptyTTLSeconds", 2 * year, []string{"spec.scalableResource.emptyTTLSeconds", "less than or equal to 31536000"}},
		"a negative emptyTTL":                  {"spec/scalableResource/emptyTTLSeconds", int64(-1), []string{"spec.scalableResource.emptyTTLSeconds", "greater than or equal to 0"}},
		"a remediation without a template":     {"spec/remediation", map[string]any{}, []string{"spec.remediation"}},
		"a remediation of another group":       {"spec/remediation", remediation("example.com", "Metal3RemediationTemplate"), []string{"spec.remediation.templateRef.apiGroup", "must be infrastructure.cluster.x-k8s.io"}},
		"a remediation that creates a machine": {"spec/remediation", remediation("infrastructure.cluster.x-k8s.io", "Metal3MachineTemplate"), []string{"spec.remediation.templateRef.kind", "must end in RemediationTemplate"}},
		"a canary of none":                     {"spec/rollout", map[string]any{"canary": int64(0)}, []string{"spec.rollout.canary", "must be a number from 1 to 50"}},
		"a canary of 51":                       {"spec/rollout", map[string]any{"canary": int64(51)}, []string{"spec.rollout.canary", "must be a number from 1 to 50"}},
		"a canary of 0%":                       {"spec/rollout", map[string]any{"canary": "0%"}, []string{"spec.rollout.canary", "should match"}},
		"a canary that is a text":              {"spec/rollout", map[string]any{"canary": "5"}, []string{"spec.rollout.canary", "should match"}},
		"a progress deadline of nothing":       {"spec/rollout", map[string]any{"progressDeadlineSeconds": int64(0)}, []string{"spec.rollout.progressDeadlineSeconds", "greater than or equal to 1"}},
		"no capacity type that takes turns":    {"spec/spread", []any{}, []string{"spec.spread", "should have at least 1 items"}},
		"turns of reservations":                {"spec/spread", []any{turns("reserved", int64(20))}, []string{"spec.spread[0].capacityType", `supported values: "on-demand", "spot"`}},
		"turns without a limit":                {"spec/spread", []any{map[string]any{"capacityType": "spot"}}, []string{"spec.spread[0].maxPriceIncreasePercent", "Required"}},
		"turns up to a lower price":            {"spec/spread", []any{turns("spot", int64(-1))}, []string{"spec.spread[0].maxPriceIncreasePercent", "greater than or equal to 0"}},
		"turns up to any price":                {"spec/spread", []any{turns("spot", int64(301))}, []string{"spec.spread[0].maxPriceIncreasePercent", "less than or equal to 300"}},
		"a limit in percent as a text":         {"spec/spread", []any{turns("spot", "20%")}, []string{"spec.spread[0].maxPriceIncreasePercent", "must be of type integer"}},
		"turns of a capacity type twice":       {"spec/spread", []any{turns("spot", int64(20)), turns("spot", int64(30))}, []string{"spec.spread[1]", "Duplicate value"}},
		"a launchTimeout of nothing":           {"spec/launchTimeoutSeconds", int64(0), []string{"spec.launchTimeoutSeconds", "greater than or equal to 1"}},
		"a launchTimeout beyond a year":        {"spec/launchTimeoutSeconds", year + 1, []string{"spec.launchTimeoutSeconds", "less than or equal to 31536000"}},
		"a spareTTL beyond a year":             {"spec/spareTTLSeconds", year + 1, []string{"spec.spareTTLSeconds", "less than or equal to 31536000"}},
		"a negative spareTTL":                  {"spec/spareTTLSeconds", int64(-1), []string{"spec.spareTTLSeconds", "greater than or equal to 0"}},
		"no bootstrap":                         {"spec/template/spec/bootstrap", nil, []string{"spec.template", "spec.bootstrap or from must be set"}},
		"neither bootstrap nor from":           {"spec/template", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}, []string{"spec.bootstrap or from must be set"}},
		"an empty from":                        {"spec/template", map[string]any{"from": map[string]any{}}, []string{"spec.template.from", "exactly one of"}},
		"both forms of from":                   {"spec/template", map[string]any{"from": map[string]any{"machineDeployment": "a", "machineDeploymentTopology": "b"}}, []string{"spec.template.from", "exactly one of"}},
		"an empty bootstrap":                   {"spec/template/spec/bootstrap", map[string]any{}, []string{"spec.template.spec.bootstrap", "exactly one of configRef and dataSecretName"}},
		"two bootstraps":                       {"spec/template/spec/bootstrap/dataSecretName", "workers", []string{"spec.template.spec.bootstrap", "exactly one of configRef and dataSecretName"}},
		"an infrastructure without a name":     {"spec/template/spec/infrastructureRef/name", nil, []string{"spec.template.spec.infrastructureRef.name", "Required"}},
		"a MachineDeployment as a base":        {"spec/template/spec/infrastructureRef", map[string]any{"apiGroup": "cluster.x-k8s.io", "kind": "MachineDeployment", "name": "workers"}, []string{"spec.template.spec.infrastructureRef.apiGroup", "apiGroup must be infrastructure.cluster.x-k8s.io"}},
		"a bootstrap of another group":         {"spec/template/spec/bootstrap/configRef/apiGroup", "cluster.x-k8s.io", []string{"spec.template.spec.bootstrap.configRef.apiGroup", "apiGroup must be bootstrap.cluster.x-k8s.io"}},
		"a type of another group":              {"spec/instanceTypes/0/infrastructureRef", map[string]any{"apiGroup": "my.infrastructure.cluster.x-k8s.io", "kind": "AWSMachineTemplate", "name": "large"}, []string{"spec.instanceTypes[0].infrastructureRef.apiGroup", "apiGroup must be infrastructure.cluster.x-k8s.io"}},
		"a discovery of nothing":               {"spec/discovery", map[string]any{"pricing": map[string]any{"cpu": "1"}}, []string{"spec.discovery", "infrastructureTemplates or machineDeployments must be set"}},
		"a discovery of another group":         {"spec/discovery", map[string]any{"infrastructureTemplates": map[string]any{"apiGroup": "cluster.x-k8s.io", "kind": "MachineDeployment", "selector": map[string]any{}}}, []string{"spec.discovery.infrastructureTemplates.apiGroup", "supported values"}},
		"a version without v":                  {"spec/template/spec/version", "1.36.3", []string{"spec.template.spec.version"}},
		"no label value on Machines":           {"spec/template/metadata/labels", map[string]any{"team": "b c"}, []string{"spec.template.metadata.labels.team"}},
		"our labels on Machines":               {"spec/template/metadata/labels", map[string]any{"karpenter.cluster.x-k8s.io/template": "x"}, []string{"spec.template.metadata", "Karpenter and the operator set them"}},
		"our annotations on Machines":          {"spec/template/metadata/annotations", map[string]any{"cluster.x-k8s.io/delete-machine": "x"}, []string{"spec.template.metadata", "the operator sets them"}},
		"too many operations of patches":       {"spec/patches", manyPatches(11, 91), []string{"spec.patches", "all patches together must have at most 1000 jsonPatches"}},
		"no annotation key":                    {resourceAnnotations, map[string]any{"a b": "x"}, []string{resourceAnnotationsField, "each key must be an annotation key"}},
		"an annotation without an end":         {resourceAnnotations, map[string]any{"a": strings.Repeat("x", 1025)}, []string{resourceAnnotationsField, "at most 1024 characters"}},
		"annotations without an end":           {resourceAnnotations, annotations(33), []string{resourceAnnotationsField, "at most 32"}},
		"our annotations on resources":         {resourceAnnotations, map[string]any{"karpenter.cluster.x-k8s.io/empty-since": "x"}, []string{resourceAnnotationsField, "the operator, Karpenter and Cluster API set them"}},
		"Karpenter's annotations":              {resourceAnnotations, map[string]any{"karpenter.sh/x": "x"}, []string{resourceAnnotationsField, "the operator, Karpenter and Cluster API set them"}},
		"Cluster API's annotations":            {resourceAnnotations, map[string]any{"machinedeployment.clusters.x-k8s.io/revision": "1"}, []string{resourceAnnotationsField, "the operator, Karpenter and Cluster API set them"}},
		"a paused resource":                    {resourceAnnotations, map[string]any{"cluster.x-k8s.io/paused": ""}, []string{resourceAnnotationsField, "set cluster.x-k8s.io/paused on the object itself"}},
		"replicas of cluster-autoscaler":       {resourceAnnotations, map[string]any{"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "3"}, []string{resourceAnnotationsField, "let another controller set its replicas"}},
		"replicas of others":                   {resourceAnnotations, map[string]any{"cluster.x-k8s.io/replicas-managed-by": "x"}, []string{resourceAnnotationsField, "let another controller set its replicas"}},
		"a check that does not exist":          {resourceAnnotations, map[string]any{skipChecks: "All,Everything"}, []string{resourceAnnotationsField, "must be a comma-separated list of All"}},
		"duplicate instance types":             {"spec/instanceTypes", []any{instanceType("a", offering("z", "spot", "1")), instanceType("a", offering("z", "spot", "1"))}, []string{"spec.instanceTypes[1]", "Duplicate value"}},
		"a negative price":                     {"spec/instanceTypes/0/offerings/0/price", "-1", []string{"spec.instanceTypes[0].offerings[0].price"}},
		"a price that is no number":            {"spec/instanceTypes/0/offerings/0/price", "cheap", []string{"spec.instanceTypes[0].offerings[0].price"}},
		"a price that is not finite":           {"spec/instanceTypes/0/offerings/0/price", "Inf", []string{"spec.instanceTypes[0].offerings[0].price"}},
		"an unknown capacity type":             {"spec/instanceTypes/0/offerings/0/capacityType", "free", []string{"spec.instanceTypes[0].offerings[0].capacityType", "supported values"}},
		"a zone that is no label value":        {"spec/instanceTypes/0/offerings/0/zones", []any{"zone a"}, []string{"spec.instanceTypes[0].offerings[0].zones[0]"}},
		"a zone twice":                         {"spec/instanceTypes/0/offerings/0/zones", []any{"a", "a"}, []string{"spec.instanceTypes[0].offerings[0].zones[1]", "Duplicate value"}},
		"a catalog twice":                      {"spec/catalogRefs", []any{map[string]any{"name": "x"}, map[string]any{"name": "x"}}, []string{"spec.catalogRefs[1]", "Duplicate value"}},
		"two limits of an offering":            {"spec/instanceTypes/0/offerings/0", reservedAndLimited, []string{"spec.instanceTypes[0].offerings[0].maxMachines", "the limit of a reservation is its count"}},
		"a failure domain of no zone":          {"spec/failureDomains", []any{failureDomain("a b", "1")}, []string{"spec.failureDomains[0].zone"}},
		"a zone without a failure domain":      {"spec/failureDomains", []any{map[string]any{"zone": "a"}}, []string{"spec.failureDomains[0].failureDomain", "Required"}},
		"an empty failure domain":              {"spec/failureDomains", []any{failureDomain("a", "")}, []string{"spec.failureDomains[0].failureDomain"}},
		"two failure domains of a zone":        {"spec/failureDomains", []any{failureDomain("a", "1"), failureDomain("a", "2")}, []string{"spec.failureDomains[1]", "Duplicate value"}},
		"a factor of no capacity type":         {"spec/pricing", factors("free", "0"), []string{"spec.pricing.factors[0].capacityType", "supported values"}},
		"a negative factor":                    {"spec/pricing", factors("spot", "-1"), []string{"spec.pricing.factors[0].factor"}},
		"two factors of a capacity type":       {"spec/pricing", factors("spot", "1", "spot", "2"), []string{"spec.pricing.factors[1]", "Duplicate value"}},
		"a conversion to nothing":              {"spec/pricing", map[string]any{"conversion": map[string]any{"currency": "EUR", "rate": "0"}}, []string{"spec.pricing.conversion.rate", "rate must be more than 0"}},
		"a currency that is none":              {"spec/pricing", map[string]any{"conversion": map[string]any{"currency": "euro", "rate": "1"}}, []string{"spec.pricing.conversion.currency"}},
		"a discount of more than all":          {"spec/pricing", adjustment("discountPercent", "100.5"), []string{"spec.pricing.adjustments[0].discountPercent", "must be at most 100 percent"}},
		"a negative discount":                  {"spec/pricing", adjustment("discountPercent", "-5"), []string{"spec.pricing.adjustments[0].discountPercent"}},
		"a negative surcharge":                 {"spec/pricing", adjustment("surchargePerHour", "-0.1"), []string{"spec.pricing.adjustments[0].surchargePerHour"}},
		"an adjustment of nothing":             {"spec/pricing", adjustment("requirements", []any{map[string]any{"key": "a", "operator": "Exists"}}), []string{"spec.pricing.adjustments[0]", "discountPercent, surchargePerHour or interruption must be set"}},
		"an interruption that costs nothing":   {"spec/pricing", adjustment("interruption", map[string]any{"percentPerMonth": "5"}), []string{"spec.pricing.adjustments[0].interruption.costHours", "Required"}},
		"two adjustments of a name":            {"spec/pricing", map[string]any{"adjustments": []any{map[string]any{"name": "a", "discountPercent": "1"}, map[string]any{"name": "a", "discountPercent": "2"}}}, []string{"spec.pricing.adjustments[1]", "Duplicate value"}},
		"a requirement without values":         {"spec/pricing", required(map[string]any{"key": "a", "operator": "In"}), []string{"spec.pricing.adjustments[0].requirements[0].values", "values must be set for the operators In and NotIn"}},
		"values that mean nothing":             {"spec/pricing", required(map[string]any{"key": "a", "operator": "Exists", "values": []any{"b"}}), []string{"spec.pricing.adjustments[0].requirements[0].values", "and for no other"}},
		"an operator that is not offered":      {"spec/pricing", required(map[string]any{"key": "a", "operator": "Gt", "values": []any{"1"}}), []string{"spec.pricing.adjustments[0].requirements[0].operator", "supported values"}},
		"no hardware":                          {"spec/instanceTypes/0/hardware", map[string]any{}, []string{"spec.instanceTypes[0].hardware", "at least 1"}},
		"hardware without power":               {"spec/instanceTypes/0/hardware", map[string]any{"watts": int64(0)}, []string{"spec.instanceTypes[0].hardware.watts", "greater than or equal to 1"}},
		"hardware that is written off at once": {"spec/instanceTypes/0/hardware", map[string]any{"depreciationMonths": int64(0)}, []string{"spec.instanceTypes[0].hardware.depreciationMonths", "greater than or equal to 1"}},
		"an unknown formula":                   {"spec/kubelet/kubeReservedFormula", "XKS", []string{"spec.kubelet.kubeReservedFormula", "supported values"}},
		"a label of a control plane":           {"spec/instanceTypes/0/labels", map[string]any{"node-role.kubernetes.io/control-plane": ""}, []string{"spec.instanceTypes[0].labels", "know Nodes of others by them"}},
		"a label of isolated Nodes":            {"spec/instanceTypes/0/labels", map[string]any{"a.node-restriction.kubernetes.io/b": "c"}, []string{"spec.instanceTypes[0].labels", "know Nodes of others by them"}},
		"no volumes at all":                    {"spec/instanceTypes/0/volumeAttachmentLimits", map[string]any{}, []string{"spec.instanceTypes[0].volumeAttachmentLimits", "at least 1"}},
		"volumes of no driver":                 {"spec/instanceTypes/0/volumeAttachmentLimits", map[string]any{"a_b": int64(1)}, []string{"spec.instanceTypes[0].volumeAttachmentLimits", "each key must be the name of a CSI driver"}},
		"fewer than no volumes":                {"spec/instanceTypes/0/volumeAttachmentLimits", map[string]any{"a": int64(-1)}, []string{"spec.instanceTypes[0].volumeAttachmentLimits", "each value must be 0 or more"}},
		"half a volume":                        {"spec/instanceTypes/0/volumeAttachmentLimits", map[string]any{"a": 1.5}, []string{"spec.instanceTypes[0].volumeAttachmentLimits.a"}},
		"no devices at all":                    {"spec/instanceTypes/0/devices", []any{}, []string{"spec.instanceTypes[0].devices", "at least 1"}},
		"devices of no driver":                 {"spec/instanceTypes/0/devices", []any{map[string]any{"driver": "a_b"}}, []string{"spec.instanceTypes[0].devices[0].driver"}},
		"no devices of a driver":               {"spec/instanceTypes/0/devices", []any{map[string]any{"driver": "a", "count": int64(0)}}, []string{"spec.instanceTypes[0].devices[0].count", "greater than or equal to 1"}},
		"an attribute of two types":            {"spec/instanceTypes/0/devices", []any{map[string]any{"driver": "a", "attributes": map[string]any{"b": map[string]any{"int": int64(1), "string": "1"}}}}, []string{"spec.instanceTypes[0].devices[0].attributes.b", "at most 1"}},
		"an attribute of no type":              {"spec/instanceTypes/0/devices", []any{map[string]any{"driver": "a", "attributes": map[string]any{"b": map[string]any{}}}}, []string{"spec.instanceTypes[0].devices[0].attributes.b", "at least 1"}},
		"a long name of an attribute":          {"spec/instanceTypes/0/devices", []any{map[string]any{"driver": "a", "attributes": map[string]any{strings.Repeat("b", 97): map[string]any{"int": int64(1)}}}}, []string{"spec.instanceTypes[0].devices[0].attributes", "at most 96 characters"}},
		"counters without a name":              {"spec/instanceTypes/0/deviceCounters", []any{map[string]any{"driver": "a", "counters": map[string]any{"b": "1"}}}, []string{"spec.instanceTypes[0].deviceCounters[0].name", "Required"}},
		"no capacity":                          {"spec/instanceTypes/0/capacity", nil, []string{"spec.instanceTypes[0].capacity", "Required"}},
		"an empty capacity":                    {"spec/instanceTypes/0/capacity", map[string]any{}, []string{"spec.instanceTypes[0].capacity"}},
		"capacity without cpu":                 {"spec/instanceTypes/0/capacity/cpu", nil, []string{"spec.instanceTypes[0].capacity", "capacity must have cpu and memory"}},
		"capacity without memory":              {"spec/instanceTypes/0/capacity/memory", nil, []string{"spec.instanceTypes[0].capacity", "capacity must have cpu and memory"}},
		"a long name of a resource":            {"spec/instanceTypes/0/capacity", map[string]any{"cpu": "2", "memory": "8Gi", strings.Repeat("a", 318): "1"}, []string{"spec.instanceTypes[0].capacity", "at most 317 characters"}},
		"a capacity that is no quantity":       {"spec/instanceTypes/0/capacity/cpu", "two", []string{"spec.instanceTypes[0].capacity.cpu"}},
		"an exponent that is no number":        {"spec/instanceTypes/0/capacity/cpu", "1e1.5", []string{"spec.instanceTypes[0].capacity.cpu"}},
		"an exponent that is too large":        {"spec/kubelet/kubeReserved", map[string]any{"cpu": "1e2147483647"}, []string{"spec.kubelet.kubeReserved.cpu"}},
		"an instance type without a name":      {"spec/instanceTypes/0/name", "", []string{"spec.instanceTypes[0].name"}},
		"a name that is no label value":        {"spec/instanceTypes/0/name", "m5/large", []string{"spec.instanceTypes[0].name"}},
		"a label of karpenter.sh":              {"spec/instanceTypes/0/labels", map[string]any{"karpenter.sh/capacity-type": "spot"}, []string{"spec.instanceTypes[0].labels", "Karpenter sets them"}},
		"a label of a karpenter.sh subpart":    {"spec/instanceTypes/0/labels", map[string]any{"x.karpenter.sh/a": "b"}, []string{"spec.instanceTypes[0].labels", "Karpenter sets them"}},
		"a label of this operator":             {"spec/instanceTypes/0/labels", map[string]any{"karpenter.cluster.x-k8s.io/template": "x"}, []string{"spec.instanceTypes[0].labels", "the operator sets all others"}},
		"a hostname":                           {"spec/instanceTypes/0/labels", map[string]any{"kubernetes.io/hostname": "x"}, []string{"spec.instanceTypes[0].labels", "kubernetes.io/hostname"}},
		"a second zone":                        {"spec/instanceTypes/0/labels", map[string]any{"topology.kubernetes.io/zone": "x"}, []string{"spec.instanceTypes[0].labels", "the offering"}},
		"a label key with a space":             {"spec/instanceTypes/0/labels", map[string]any{"my label": "x"}, []string{"spec.instanceTypes[0].labels", "each key must be a label key"}},
		"a label key in two domains":           {"spec/instanceTypes/0/labels", map[string]any{"a/b/c": "x"}, []string{"spec.instanceTypes[0].labels", "each key must be a label key"}},
		"a label key in a wrong domain":        {"spec/instanceTypes/0/labels", map[string]any{"Example..com/a": "x"}, []string{"spec.instanceTypes[0].labels", "each key must be a label key"}},
		"a label key that is too long":         {"spec/instanceTypes/0/labels", map[string]any{"example.com/" + strings.Repeat("a", 64): "x"}, []string{"spec.instanceTypes[0].labels", "each key must be a label key"}},
		"a label value that is none":           {"spec/instanceTypes/0/labels", map[string]any{"a": "b c"}, []string{"spec.instanceTypes[0].labels.a"}},
		"no room for pods":                     {"spec/kubelet/maxPods", int64(0), []string{"spec.kubelet.maxPods"}},
		"an unknown eviction signal":           {"spec/kubelet/evictionHard", map[string]any{"cpu.available": "5%"}, []string{"spec.kubelet.evictionHard", "evictionHard must contain only"}},
		"an eviction beyond all":               {"spec/kubelet/evictionHard", map[string]any{"memory.available": "105%"}, []string{"spec.kubelet.evictionHard"}},
		"reservation of an unknown kind":       {"spec/kubelet/kubeReserved", map[string]any{"gpu": "1"}, []string{"spec.kubelet.kubeReserved", "kubeReserved must contain only"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := apiServer.Create(context.Background(), edit(t, tc.path, tc.value), client.DryRunAll)
			if !apierrors.IsInvalid(err) {
				t.Fatalf("got %v, want the API server to refuse it as invalid", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to contain %q", err, want)
				}
			}
		})
	}
}

// The status is decoded with the spec, so it is checked as strictly.
func TestStatusRefused(t *testing.T) {
	stored := edit(t, "metadata/name", "status")
	if err := apiServer.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := apiServer.Delete(context.Background(), stored); err != nil {
			t.Error(err)
		}
	})
	unavailable := func(until any) []any {
		return []any{map[string]any{"instanceType": "a", "capacityType": "spot", "reason": "x", "failures": int64(1), "until": until}}
	}
	for name, tc := range map[string]struct {
		field string
		value any
		want  string
	}{
		"a time that is a list":      {"unavailableOfferings", unavailable([]any{}), "status.unavailableOfferings[0].until"},
		"a time without a zone":      {"unavailableOfferings", unavailable("2026-11-25T00:00:00"), "status.unavailableOfferings[0].until"},
		"a day that does not exist":  {"unavailableOfferings", unavailable("2026-02-30T00:00:00Z"), "status.unavailableOfferings[0].until"},
		"a condition without a date": {"conditions", []any{map[string]any{"type": "x", "status": "True", "reason": "x", "message": "", "lastTransitionTime": []any{}}}, "status.conditions[0].lastTransitionTime"},
		"an exponent that is no number": {"observedCapacity", []any{map[string]any{"instanceType": "a", "revision": "x", "capacity": map[string]any{"cpu": "1e1.5"}, "allocatable": map[string]any{}}},
			"status.observedCapacity[0].capacity.cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := stored.DeepCopy()
			changed.Object["status"] = map[string]any{tc.field: tc.value}
			if err := apiServer.Status().Update(t.Context(), changed, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want the API server to refuse %s", err, tc.want)
			}
		})
	}
}
