// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"regexp"
	"strings"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// azureParts are the parts of the name of a size: family, number of CPUs, features, accelerator
// and version. Example: Standard_NC4as_T4_v3.
var azureParts = regexp.MustCompile(`^(?:Standard|Basic)_([A-Z]+)([0-9]+(?:-[0-9]+)?)([a-z]*)((?:_[A-Za-z0-9]+)*?)(?:_v([0-9]+))?$`)

// azureGPUs are the models of GPUs that the name of a size does not have.
var azureGPUs = map[string]string{
	"NC1": "k80", "NC2": "p100", "NC3": "v100", "ND1": "p40", "ND2": "v100", "ND4": "a100", "NV1": "m60", "NV2": "m60", "NV3": "m60", "NV4": "mi25",
}

// azureName sets the labels that follow from the name, and the GPUs.
func azureName(m *machine, gpus int64) {
	parts := azureParts.FindStringSubmatch(m.name)
	if parts == nil {
		return
	}
	family, size, features, accelerator, version := parts[1], parts[2], parts[3], strings.ReplaceAll(parts[4], "_", ""), lo.CoalesceOrEmpty(parts[5], "1")
	m.label(v1alpha1.InstanceFamilyLabel, family+features+accelerator+lo.Ternary(parts[5] == "", "", "v"+version))
	m.label(v1alpha1.InstanceSizeLabel, size)
	m.label(v1alpha1.InstanceCategoryLabel, family[:1])
	m.label(v1alpha1.InstanceGenerationLabel, version)
	if m.architecture == karpv1.ArchitectureAmd64 {
		isAMD := strings.Contains(features, "a") || strings.HasPrefix(family, "HB") || family == "HX"
		m.label(v1alpha1.InstanceCPUManufacturerLabel, lo.Ternary(isAMD, "amd", "intel"))
	}
	model := lo.CoalesceOrEmpty(strings.ToLower(accelerator), azureGPUs[family+version])
	isAMD := strings.HasPrefix(model, "mi") || model == "v620"
	m.gpus(lo.Ternary(isAMD, amdGPU, nvidiaGPU), gpus, model)
}
