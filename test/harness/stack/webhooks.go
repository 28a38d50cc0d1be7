// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhooks is where the API server reaches the webhooks of a manager, and what it knows of them.
type webhooks struct {
	component string
	port      int
	caBundle  []byte

	// prefix is that of the names of the configurations, which are the same in the manifests of all managers.
	prefix string

	// manifests is the file of the webhook configurations, and crds the folder of the CustomResourceDefinitions, which get labels.
	manifests, crds string
	labels          map[string]string
	// converts is true if a webhook converts between the versions of the CustomResourceDefinitions.
	converts bool
}

// webhooksOf returns the webhooks of a manager of Cluster API, by its folder in the module, its name as a provider, and the prefix of
// names in its kustomization.
func (m *modules) webhooksOf(manager, provider, prefix string) *webhooks {
	config := filepath.Join(m.clusterAPI, manager, "config")
	labels := map[string]string{clusterv1.ProviderNameLabel: provider}
	if provider != "cluster-api" {
		for _, version := range []string{"v1beta1", "v1beta2"} {
			labels[clusterv1.GroupVersion.Group+"/"+version] = version
		}
	}
	return &webhooks{
		prefix: prefix, manifests: filepath.Join(config, "webhook", "manifests.yaml"), crds: filepath.Join(config, "crd", "bases"), labels: labels, converts: true,
	}
}

func (w *webhooks) url(path string) string {
	return "https://" + address(w.port) + path
}

// createCertificate creates the certificate of the webhook servers, and an authority that signs nothing else. It returns the
// chain, which ends with the authority.
func createCertificate(state folder) ([]byte, error) {
	chain, key, err := certutil.GenerateSelfSignedCertKey(localhost, []net.IP{net.ParseIP(localhost)}, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate of the webhooks: %w", err)
	}
	// Cluster API expects these names.
	return chain, errors.Join(
		os.WriteFile(filepath.Join(state.certificates(), "tls.crt"), chain, 0o600),
		os.WriteFile(filepath.Join(state.certificates(), "tls.key"), key, 0o600),
	)
}

// configure creates the manager's webhook configurations, with a URL in place of the service.
func (w *webhooks) configure(ctx context.Context, c client.Client) error {
	data, err := os.ReadFile(w.manifests)
	if err != nil {
		return err
	}
	objects, err := decode(data)
	if err != nil {
		return fmt.Errorf("reading the webhook configurations of %s: %w", w.component, err)
	}
	for _, obj := range objects {
		config, err := w.withURLs(obj)
		if err != nil {
			return err
		}
		if err := c.Create(ctx, config); err != nil {
			return fmt.Errorf("creating the %s %s: %w", obj.GetKind(), config.GetName(), err)
		}
	}
	return nil
}

func (w *webhooks) withURLs(obj *unstructured.Unstructured) (client.Object, error) {
	switch obj.GetKind() {
	case "MutatingWebhookConfiguration":
		config := &admissionregistrationv1.MutatingWebhookConfiguration{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, config)
		for i := range config.Webhooks {
			w.setURL(&config.Webhooks[i].ClientConfig)
		}
		config.Name = w.prefix + config.Name
		return config, err
	case "ValidatingWebhookConfiguration":
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, config)
		for i := range config.Webhooks {
			w.setURL(&config.Webhooks[i].ClientConfig)
		}
		config.Name = w.prefix + config.Name
		return config, err
	default:
		return nil, fmt.Errorf("no webhook configuration: %s %s", obj.GetKind(), obj.GetName())
	}
}

func (w *webhooks) setURL(config *admissionregistrationv1.WebhookClientConfig) {
	if config.Service != nil {
		config.URL = ptr.To(w.url(ptr.Deref(config.Service.Path, "")))
	}
	config.Service = nil
	config.CABundle = w.caBundle
}
