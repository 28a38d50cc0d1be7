// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	infrastructure "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/config"
)

const crdTimeout = 30 * time.Second

// workloadCRDs are the CRDs of Karpenter and of this project, and if kwok is set that of Karpenter's own simulated
// provider.
func workloadCRDs(m *modules, kwok bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dirs := []string{filepath.Join(m.karpenter, "pkg", "apis", "crds"), filepath.Join(m.root, "config", "crd", "bases")}
	if kwok {
		dirs = append(dirs, filepath.Join(m.karpenter, "kwok", "apis", "crds"))
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, dir := range dirs {
		crds, err := readCRDs(os.DirFS(dir))
		if err != nil {
			return nil, err
		}
		all = append(all, crds...)
	}
	return all, nil
}

// managementCRDs are the CRDs of the managers and of the simulated provider.
func managementCRDs(managers map[string]*webhooks) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := readCRDs(infrastructure.CRDs)
	for _, hooks := range managers {
		crds, readErr := readCRDs(os.DirFS(hooks.crds))
		err = errors.Join(err, readErr)
		for _, crd := range crds {
			hooks.complete(crd)
		}
		all = append(all, crds...)
	}
	for _, crd := range all {
		// clusterctl labels what it installs, and moves only objects of such kinds.
		metav1.SetMetaDataLabel(&crd.ObjectMeta, clusterctlv1.ClusterctlLabel, "")
	}
	return all, err
}

// complete adds to a CRD what the kustomizations of Cluster API and its providers add.
func (w *webhooks) complete(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Labels = maps.Clone(w.labels)
	if !w.converts {
		return
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To(w.url("/convert")), CABundle: w.caBundle},
		},
	}
}

// readCRDs reads all YAML files below a folder, one CRD in each. It skips kustomizations.
func readCRDs(files fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	err := fs.WalkDir(files, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".yaml") || filepath.Base(path) == "kustomization.yaml" {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		crds = append(crds, crd)
		return nil
	})
	if err == nil && len(crds) == 0 {
		err = fmt.Errorf("no CRD in %v", files)
	}
	return crds, err
}

// createCRDs creates the CRDs and waits until the API server serves them.
func createCRDs(ctx context.Context, c client.Client, crds []*apiextensionsv1.CustomResourceDefinition) error {
	var errs []error
	for _, crd := range crds {
		if err := c.Create(ctx, crd); err != nil {
			errs = append(errs, fmt.Errorf("creating the CRD %s: %w", crd.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return Await(ctx, crdTimeout, "the CRDs to be established", func(ctx context.Context) (bool, string, error) {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := c.List(ctx, list); err != nil {
			return false, err.Error(), nil
		}
		var waiting []string
		for i := range list.Items {
			if !established(&list.Items[i]) {
				waiting = append(waiting, list.Items[i].Name)
			}
		}
		return len(waiting) == 0, "not established: " + strings.Join(waiting, ", "), nil
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
