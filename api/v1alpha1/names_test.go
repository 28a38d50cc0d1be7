// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Clusters have these names stored, and NodePools, alerts and scripts contain them: a changed one loses Machines,
// or is never seen again.
func TestNames(t *testing.T) {
	for _, name := range [][2]string{
		{v1alpha1.TemplateLabel, "karpenter.cluster.x-k8s.io/template"},
		{v1alpha1.InstanceTypeLabel, "karpenter.cluster.x-k8s.io/instance-type"},
		{v1alpha1.ZoneLabel, "karpenter.cluster.x-k8s.io/zone"},
		{v1alpha1.CapacityTypeLabel, "karpenter.cluster.x-k8s.io/capacity-type"},
		{v1alpha1.TemplateHashLabel, "karpenter.cluster.x-k8s.io/template-hash"},
		{v1alpha1.NodeClaimUIDLabel, "karpenter.cluster.x-k8s.io/node-claim-uid"},
		{v1alpha1.OtherMemberLabel, "node.cluster.x-k8s.io/karpenter-member"},
		{v1alpha1.NodeClaimAnnotation, "karpenter.cluster.x-k8s.io/node-claim"},
		{v1alpha1.ScalableResourceAnnotation, "karpenter.cluster.x-k8s.io/scalable-resource"},
		{v1alpha1.TemplateHashAnnotation, "karpenter.cluster.x-k8s.io/template-hash"},
		{v1alpha1.MachineHashesAnnotation, "karpenter.cluster.x-k8s.io/machine-hashes"},
		{v1alpha1.EmptySinceAnnotation, "karpenter.cluster.x-k8s.io/empty-since"},
		{v1alpha1.TemplateAnnotationsAnnotation, "karpenter.cluster.x-k8s.io/annotations-from-template"},
		{v1alpha1.InPlaceHashAnnotation, "karpenter.cluster.x-k8s.io/in-place-hash"},
		{v1alpha1.SpareSinceAnnotation, "karpenter.cluster.x-k8s.io/spare-since"},
		{v1alpha1.MarkedForDeletionAtAnnotation, "karpenter.cluster.x-k8s.io/marked-for-deletion-at"},
		{v1alpha1.ReplicasSetAtAnnotation, "karpenter.cluster.x-k8s.io/replicas-set-at"},
		{v1alpha1.ReplicasLoweredAtAnnotation, "karpenter.cluster.x-k8s.io/replicas-lowered-at"},
		{v1alpha1.DrainHookAnnotation, "pre-drain.delete.hook.machine.cluster.x-k8s.io/karpenter"},
		{v1alpha1.TerminateHookAnnotation, "pre-terminate.delete.hook.machine.cluster.x-k8s.io/karpenter"},
		{v1alpha1.TerminationFinalizer, "karpenter.cluster.x-k8s.io/termination"},
		{v1alpha1.InstanceCPULabel, "karpenter.cluster.x-k8s.io/instance-cpu"},
		{v1alpha1.InstanceMemoryLabel, "karpenter.cluster.x-k8s.io/instance-memory"},
		{v1alpha1.InstanceGPUCountLabel, "karpenter.cluster.x-k8s.io/instance-gpu-count"},
		{v1alpha1.InstanceGPUNameLabel, "karpenter.cluster.x-k8s.io/instance-gpu-name"},
		{v1alpha1.InstanceCategoryLabel, "karpenter.cluster.x-k8s.io/instance-category"},
		{v1alpha1.InstanceFamilyLabel, "karpenter.cluster.x-k8s.io/instance-family"},
		{v1alpha1.InstanceGenerationLabel, "karpenter.cluster.x-k8s.io/instance-generation"},
		{v1alpha1.InstanceSizeLabel, "karpenter.cluster.x-k8s.io/instance-size"},
		{v1alpha1.InstanceCPUManufacturerLabel, "karpenter.cluster.x-k8s.io/instance-cpu-manufacturer"},
		{v1alpha1.InstanceLocalStorageLabel, "karpenter.cluster.x-k8s.io/instance-local-storage"},
		{v1alpha1.InstanceNetworkBandwidthLabel, "karpenter.cluster.x-k8s.io/instance-network-bandwidth"},
		{v1alpha1.ReservationIDLabel, "karpenter.cluster.x-k8s.io/reservation-id"},
		{v1alpha1.DiscoveredInstanceTypeAnnotation, "karpenter.cluster.x-k8s.io/instance-type"},
		{v1alpha1.DiscoveredZonesAnnotation, "karpenter.cluster.x-k8s.io/zones"},
		{v1alpha1.DiscoveredCapacityTypeAnnotation, "karpenter.cluster.x-k8s.io/capacity-type"},
		{v1alpha1.DiscoveredPriceAnnotation, "karpenter.cluster.x-k8s.io/price"},
		{v1alpha1.DiscoveredMaxMachinesAnnotation, "karpenter.cluster.x-k8s.io/max-machines"},
		{v1alpha1.PriceAnnotation, "karpenter.cluster.x-k8s.io/price"},
		{v1alpha1.TemplateRevisionAnnotation, "karpenter.cluster.x-k8s.io/template-revision"},
		{v1alpha1.RolloutResumedAtAnnotation, "karpenter.cluster.x-k8s.io/rollout-resumed-at"},
		{v1alpha1.RemediationAnnotation, "karpenter.cluster.x-k8s.io/remediation"},
		{v1alpha1.RemediationOperationAnnotation, "karpenter.cluster.x-k8s.io/remediation-operation"},
		{v1alpha1.TaintMissingAnnotation, "karpenter.cluster.x-k8s.io/taint-missing"},
		{v1alpha1.AdoptableAnnotation, "karpenter.cluster.x-k8s.io/adoptable"},
		{v1alpha1.AdoptedAnnotation, "karpenter.cluster.x-k8s.io/adopted"},
		{v1alpha1.UnmanagedReplicasAnnotation, "karpenter.cluster.x-k8s.io/unmanaged-replicas"},

		{v1alpha1.ConditionClusterReady, "ClusterReady"},
		{v1alpha1.ConditionFromReady, "FromReady"},
		{v1alpha1.ConditionInfrastructureReady, "InfrastructureReady"},
		{v1alpha1.ConditionBootstrapReady, "BootstrapReady"},
		{v1alpha1.ConditionVersionReady, "VersionReady"},
		{v1alpha1.ConditionInstanceTypesReady, "InstanceTypesReady"},
		{v1alpha1.ConditionDeletable, "Deletable"},
		{v1alpha1.ConditionOfferingsAvailable, "OfferingsAvailable"},
		{v1alpha1.ConditionOfferingsValid, "OfferingsValid"},
		{v1alpha1.ConditionCapacityAccurate, "CapacityAccurate"},
		{v1alpha1.ConditionNodesTainted, "NodesTainted"},
		{v1alpha1.ConditionNodesCurrent, "NodesCurrent"},
		{v1alpha1.ReasonOfferingsUnavailable, "OfferingsUnavailable"},
		{v1alpha1.ReasonInterrupted, "Interrupted"},
		{v1alpha1.ConditionMachineAvailable, "MachineAvailable"},
		{v1alpha1.ReasonBlocked, "Blocked"},
		{v1alpha1.ReasonNoProgress, "NoProgress"},
		{v1alpha1.ReasonResumed, "Resumed"},
		{v1alpha1.ReasonRejected, "Rejected"},
		{v1alpha1.ConditionMachinesProgressing, "MachinesProgressing"},
		{v1alpha1.ReasonObjectsNotReadable, "ObjectsNotReadable"},
		{v1alpha1.ConditionMachineReady, "MachineReady"},
		{v1alpha1.ReasonMachineProvisioned, "MachineProvisioned"},
		{v1alpha1.ReasonWaitingForBootstrap, "WaitingForBootstrap"},
		{v1alpha1.ReasonWaitingForInfrastructure, "WaitingForInfrastructure"},
		{v1alpha1.ReasonWaitingForNode, "WaitingForNode"},
		{v1alpha1.ReasonRegistrationTimeout, "RegistrationTimeout"},
		{v1alpha1.ReasonMachineLinked, "MachineLinked"},
		{v1alpha1.ReasonProviderIDSet, "ProviderIDSet"},
		{v1alpha1.ReasonNodePoolNotReady, "NodePoolNotReady"},
		{v1alpha1.ConditionProviderIDUnchanged, "ProviderIDUnchanged"},
		{v1alpha1.ReasonProviderIDChanged, "ProviderIDChanged"},
		{v1alpha1.ReasonProviderIDShared, "ProviderIDShared"},
		{v1alpha1.ReasonClusterNotFound, "ClusterNotFound"},
		{v1alpha1.ReasonClusterDeleting, "ClusterDeleting"},
		{v1alpha1.ReasonClusterDeleted, "ClusterDeleted"},
		{v1alpha1.ReasonClusterPaused, "ClusterPaused"},
		{v1alpha1.ReasonClusterUnreachable, "ClusterUnreachable"},
		{v1alpha1.ReasonClusterNotProvisioned, "ClusterNotProvisioned"},
		{v1alpha1.ReasonReferenceMissing, "ReferenceMissing"},
		{v1alpha1.ReasonReferenceNotFound, "ReferenceNotFound"},
		{v1alpha1.ReasonReferenceUnusable, "ReferenceUnusable"},
		{v1alpha1.ReasonReferenceKindUnusable, "ReferenceKindUnusable"},
		{v1alpha1.ReasonVersionMissing, "VersionMissing"},
		{v1alpha1.ReasonVersionSkew, "VersionSkew"},
		{v1alpha1.ReasonScalableResourceUnusable, "ScalableResourceUnusable"},
		{v1alpha1.ReasonNoInstanceTypes, "NoInstanceTypes"},
		{v1alpha1.ReasonCapacityNotCounted, "CapacityNotCounted"},
		{v1alpha1.ReasonInstanceTypesInvalid, "InstanceTypesInvalid"},
		{v1alpha1.ConditionPriceAdjustmentsValid, "PriceAdjustmentsValid"},
		{v1alpha1.ReasonAdjustmentsInvalid, "AdjustmentsInvalid"},
		{v1alpha1.ReasonTooManyOfferings, "TooManyOfferings"},
		{v1alpha1.ReasonZonesUnknown, "ZonesUnknown"},
		{v1alpha1.ReasonDiscoveryIncomplete, "DiscoveryIncomplete"},
		{v1alpha1.ReasonMachineDeploymentChanged, "MachineDeploymentChanged"},
		{v1alpha1.ReasonTaintsNotInNodePool, "TaintsNotInNodePool"},
		{v1alpha1.ReasonSourcesConflict, "SourcesConflict"},
		{v1alpha1.ReasonPatchesFailed, "PatchesFailed"},
		{v1alpha1.ReasonTemplatesRejected, "TemplatesRejected"},
		{v1alpha1.ReasonNameTaken, "NameTaken"},
		{v1alpha1.ReasonSecretNotAllowed, "SecretNotAllowed"},
		{v1alpha1.ReasonAdoptionNotAllowed, "AdoptionNotAllowed"},
		{v1alpha1.ReasonBaseTemplateNotAllowed, "BaseTemplateNotAllowed"},
		{v1alpha1.ReasonFieldNotAllowed, "FieldNotAllowed"},
		{v1alpha1.ReasonCapacityDiffers, "CapacityDiffers"},
		{v1alpha1.ReasonTaintMissing, "TaintMissing"},
		{v1alpha1.ReasonNodeClaimsRemain, "NodeClaimsRemain"},
		{v1alpha1.ReasonGeneratedObjectsRemain, "GeneratedObjectsRemain"},
		{v1alpha1.ReasonVersionSet, "VersionSet"},
		{v1alpha1.ReasonVersionOfMachineDeployment, "VersionOfMachineDeployment"},
		{v1alpha1.ReasonVersionOfControlPlane, "VersionOfControlPlane"},
		{v1alpha1.ReasonVersionUnknown, "VersionUnknown"},
		{v1alpha1.ReasonNodesOutdated, "NodesOutdated"},
		{v1alpha1.ConditionRemediationReady, "RemediationReady"},
		{v1alpha1.ReasonRequestsNotAllowed, "RequestsNotAllowed"},
		{v1alpha1.ReasonRemediationRequested, "RemediationRequested"},
		{v1alpha1.ConditionRolloutProgressing, "RolloutProgressing"},
		{v1alpha1.ReasonRolloutCanary, "Canary"},
		{v1alpha1.ReasonRolloutSoaking, "Soaking"},
		{v1alpha1.ReasonRolloutRolling, "Rolling"},
		{v1alpha1.ReasonRolloutComplete, "RolloutComplete"},
		{v1alpha1.ReasonRolloutPaused, "RolloutPaused"},
		{v1alpha1.ReasonRolloutStopped, "RolloutStopped"},
		{string(v1alpha1.RolloutCanary), "Canary"},
		{string(v1alpha1.RolloutSoaking), "Soaking"},
		{string(v1alpha1.RolloutRolling), "Rolling"},
		{string(v1alpha1.RolloutComplete), "Complete"},
		{string(v1alpha1.RolloutStopped), "Stopped"},
		{v1alpha1.DriftVersion, "VersionDrift"},
		{v1alpha1.DriftKubelet, "KubeletDrift"},
		{v1alpha1.DriftInfrastructure, "InfrastructureDrift"},
		{v1alpha1.DriftBootstrap, "BootstrapDrift"},
		{v1alpha1.DriftOfferingRemoved, "OfferingRemoved"},
		{v1alpha1.ConditionInstanceTypesValid, "InstanceTypesValid"},
		{v1alpha1.ConditionReady, "Ready"},
		{v1alpha1.ReasonInsufficientCapacity, "InsufficientCapacity"},
		{v1alpha1.ReasonQuotaExceeded, "QuotaExceeded"},
		{v1alpha1.ReasonMachineFailed, "MachineFailed"},
		{v1alpha1.ReasonLaunchTimeout, "LaunchTimeout"},
		{v1alpha1.ReasonLimitReached, "LimitReached"},
		{v1alpha1.ReasonNodeClassReadinessUnknown, "NodeClassReadinessUnknown"},
		{v1alpha1.ReasonTemplateUnusable, "TemplateUnusable"},

		{v1alpha1.Group, "karpenter.cluster.x-k8s.io"},
		{v1alpha1.CatalogKind, "InstanceTypeCatalog"},
		{string(v1alpha1.ScalableResourceKindMachineDeployment), "MachineDeployment"},
		{string(v1alpha1.ScalableResourceKindMachinePool), "MachinePool"},
		{string(v1alpha1.KubeReservedAKS), "AKS"},
		{string(v1alpha1.KubeReservedEKS), "EKS"},
		{string(v1alpha1.KubeReservedGKE), "GKE"},
		{string(v1alpha1.PatchTargetInfrastructure), "Infrastructure"},
		{string(v1alpha1.PatchTargetBootstrap), "Bootstrap"},
	} {
		if name[0] != name[1] {
			t.Errorf("got %s, want %s", name[0], name[1])
		}
	}
}

// No label, annotation, condition or reason is missing above.
func TestAllNamesAreTested(t *testing.T) {
	read := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	tested := read("names_test.go")
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constant := regexp.MustCompile(`(?m)^(?:const |\t)((?:Condition|Reason|Drift)[A-Z]\w*|[A-Z]\w*(?:Label|Annotation|Finalizer)) +(?:\w+ +)?= `)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range constant.FindAllStringSubmatch(read(file), -1) {
			if found++; !regexp.MustCompile(`v1alpha1\.` + match[1] + `\W`).MatchString(tested) {
				t.Errorf("%s in %s is not among the names of TestNames", match[1], file)
			}
		}
	}
	if found < 100 {
		t.Errorf("found %d names, want all", found)
	}
}

// The descriptions of the fields name the defaults.
func TestDefaults(t *testing.T) {
	for path, tc := range map[string]struct {
		constant, want time.Duration
	}{
		"spec.launchTimeoutSeconds":             {v1alpha1.DefaultLaunchTimeout, 10 * time.Minute},
		"spec.spareTTLSeconds":                  {v1alpha1.DefaultSpareTTL, 2 * time.Minute},
		"spec.rollout.soakSeconds":              {v1alpha1.DefaultSoak, 10 * time.Minute},
		"spec.rollout.progressDeadlineSeconds":  {v1alpha1.DefaultProgressDeadline, 10 * time.Minute},
		"spec.scalableResource.emptyTTLSeconds": {v1alpha1.DefaultEmptyTTL, 30 * time.Minute},
	} {
		match := regexp.MustCompile(`Default: (\d+)`).FindStringSubmatch(schemaOf(t, "karpentermachinetemplates", path)["description"].(string))
		if match == nil {
			t.Fatalf("%s documents no default", path)
		}
		stored := schemaOf(t, "karpentermachinetemplates", path)["default"]
		if want := fmt.Sprint(tc.want.Seconds()); match[1] != want || fmt.Sprint(stored) != want || tc.constant != tc.want {
			t.Errorf("%s: the default is %s, the API server sets %v, and documented is %s, want %s", path, tc.constant, stored, match[1], want)
		}
	}
}

// kubectl explain prints descriptions, and editors show them beside a field, so a guide has the details.
func TestDescriptionsAreShort(t *testing.T) {
	for _, resource := range []string{"karpentermachinetemplates", "instancetypecatalogs"} {
		checkDescriptions(t, resource, new(readSchema(t, resource)))
	}
}

// checkDescriptions checks the description of a field, and of all fields in it.
func checkDescriptions(t *testing.T, path string, field *apiextensions.JSONSchemaProps) {
	t.Helper()
	const most = 80
	if words := len(strings.Fields(field.Description)); words > most {
		t.Errorf("the description of %s has %d words, want at most %d: move details to docs/guides", path, words, most)
	}
	for name, inner := range field.Properties {
		checkDescriptions(t, path+"."+name, &inner)
	}
	if field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil {
		checkDescriptions(t, path+".*", field.AdditionalProperties.Schema)
	}
	if field.Items != nil {
		checkDescriptions(t, path+"[]", field.Items.Schema)
	}
}

// What fills a list stops at the length that the API server accepts. With a higher limit no status can be written any
// more; with a lower one, something is left out without need.
func TestLengths(t *testing.T) {
	for _, tc := range []struct{ file, constant, resource, path string }{
		{"catalog/limits.go", "maxLimitedOfferings", "karpentermachinetemplates", "status.limitedOfferings"},
		{"catalog/unavailable.go", "maxUnavailableOfferings", "karpentermachinetemplates", "status.unavailableOfferings"},
		{"controller/machinetemplate/resources.go", "maxScalableResources", "karpentermachinetemplates", "status.scalableResources"},
		{"rollout/next.go", "maxCanary", "karpentermachinetemplates", "status.rollout.canary"},
		{"rollout/next.go", "maxHistory", "karpentermachinetemplates", "status.rollout.history"},
		{"generate/invalid.go", "maxGroups", "karpentermachinetemplates", "status.invalidOfferings"},
		{"generate/invalid.go", "maxExamples", "karpentermachinetemplates", "status.invalidOfferings.examples"},
		{"cli/importer/build.go", "maxTypes", "instancetypecatalogs", "spec.instanceTypes"},
		{"cli/importer/build.go", "maxOfferings", "instancetypecatalogs", "spec.instanceTypes.offerings"},
		{"cli/importer/build.go", "maxOfferings", "instancetypecatalogs", "spec.offerings"},
		{"cli/importer/build.go", "maxZones", "instancetypecatalogs", "spec.instanceTypes.offerings.zones"},
		{"cli/importer/build.go", "maxZones", "instancetypecatalogs", "spec.offerings.zones"},
	} {
		content, err := os.ReadFile("../../internal/" + tc.file)
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(`\b` + tc.constant + ` += (\d+)\n`).FindSubmatch(content)
		if match == nil {
			t.Fatalf("%s has no constant %s with a number", tc.file, tc.constant)
		}
		if want := fmt.Sprint(schemaOf(t, tc.resource, tc.path)["maxItems"]); string(match[1]) != want {
			t.Errorf("%s in %s is %s, and %s of %s has at most %s items", tc.constant, tc.file, match[1], tc.path, tc.resource, want)
		}
	}
}

// schemaOf returns the schema of a field, or of a field of the items of a list.
func schemaOf(t *testing.T, resource, path string) map[string]any {
	t.Helper()
	content, err := os.ReadFile("../../config/crd/bases/" + v1alpha1.Group + "_" + resource + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition any
	if err := yaml.Unmarshal(content, &definition); err != nil {
		t.Fatal(err)
	}
	versions := definition.(map[string]any)["spec"].(map[string]any)["versions"].([]any)
	field := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	for part := range strings.SplitSeq(path, ".") {
		if items, isList := field["items"]; isList {
			field = items.(map[string]any)
		}
		field = field["properties"].(map[string]any)[part].(map[string]any)
	}
	return field
}

// Ready depends on each condition that reports whether Machines can be created, and on no other.
func TestReadyDependsOn(t *testing.T) {
	following := func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.From = &v1alpha1.MachineTemplateSource{} }
	deleting := func(t *v1alpha1.KarpenterMachineTemplate) { t.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	usual := func(*v1alpha1.KarpenterMachineTemplate) {}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplate)
		want   bool // whether Ready depends on it
	}{
		v1alpha1.ConditionClusterReady:        {usual, true},
		v1alpha1.ConditionInfrastructureReady: {usual, true},
		v1alpha1.ConditionBootstrapReady:      {usual, true},
		v1alpha1.ConditionVersionReady:        {usual, true},
		v1alpha1.ConditionInstanceTypesReady:  {usual, true},
		v1alpha1.ConditionFromReady:           {following, true},
		v1alpha1.ConditionDeletable:           {deleting, true},
		v1alpha1.ConditionOfferingsAvailable:  {usual, false},
		v1alpha1.ConditionOfferingsValid:      {usual, false},
		v1alpha1.ConditionCapacityAccurate:    {usual, false},
		v1alpha1.ConditionNodesTainted:        {usual, false},
		v1alpha1.ConditionNodesCurrent:        {usual, false},
		v1alpha1.ConditionMachinesProgressing: {usual, false},
		v1alpha1.ConditionRolloutProgressing:  {usual, false},
		v1alpha1.ConditionRemediationReady:    {usual, false},
	} {
		t.Run(name, func(t *testing.T) {
			template := &v1alpha1.KarpenterMachineTemplate{}
			tc.change(template)
			conditions := template.StatusConditions()
			for _, dependent := range conditions.List() {
				conditions.SetTrue(dependent.Type)
			}
			if !conditions.IsTrue(status.ConditionReady) {
				t.Fatalf("it is not Ready although all conditions are True: %v", template.Status.Conditions)
			}
			conditions.SetFalse(name, "Test", "test")
			if got := !conditions.IsTrue(status.ConditionReady); got != tc.want {
				t.Errorf("Ready depends on it: got %t, want %t", got, tc.want)
			}
		})
	}
}

// An edit is seen exactly if it changes what the template follows, or what was taken from it.
func TestFromHash(t *testing.T) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	template.Status.From = &v1alpha1.ObservedMachineTemplate{Hash: "1"}
	if got := template.FromHash(); got != "" {
		t.Errorf("a template that follows nothing has hash %s", got)
	}
	template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "md-0"}
	if got := template.FromHash(); got != "1" {
		t.Errorf("got hash %q, want that of what was taken", got)
	}
	template.Status.From = nil
	if got := template.FromHash(); got != "" {
		t.Errorf("a template that has taken nothing has hash %s", got)
	}
}
