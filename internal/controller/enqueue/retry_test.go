// SPDX-License-Identifier: Apache-2.0

package enqueue_test

import (
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/scalableresource"
)

// registry is a manager that runs nothing.
type registry struct {
	manager.Manager
	controllers []manager.Runnable
}

// Add implements manager.Manager.
func (r *registry) Add(controller manager.Runnable) error {
	r.controllers = append(r.controllers, controller)
	return nil
}

// An error whose cause ends without an event is retried within half a minute, even if it
// occurred many times before.
func TestErrorsAreRetriedSoon(t *testing.T) {
	mgr, err := ctrl.NewManager(&rest.Config{}, manager.Options{
		Scheme:         scheme.Scheme,
		Metrics:        metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	registry, clusters := &registry{Manager: mgr}, &clients.Clusters{Workload: mgr, Management: mgr}
	links := link.NewReconciler(clusters, nil)
	resources := scalableresource.NewReconciler(clusters, catalog.New(clusters), links, nil, clock.RealClock{}, nil)
	if err := errors.Join(links.Register(t.Context(), registry), resources.Register(t.Context(), registry)); err != nil {
		t.Fatal(err)
	}
	if len(registry.controllers) != 2 {
		t.Fatalf("got %d controllers, want 2", len(registry.controllers))
	}
	expectSoon(t, registry.controllers[0], link.Request{Resource: "resource"})
	expectSoon(t, registry.controllers[1], reconcile.Request{NamespacedName: types.NamespacedName{Name: "resource"}})
}

func expectSoon[request comparable](t *testing.T, controller manager.Runnable, of request) {
	t.Helper()
	// No interface provides it.
	limiter, is := reflect.ValueOf(controller).Elem().FieldByName("RateLimiter").Interface().(workqueue.TypedRateLimiter[request])
	if !is {
		t.Fatalf("%T has no rate limiter", controller)
	}
	first, last := limiter.When(of), time.Duration(0)
	for range 50 {
		last = limiter.When(of)
	}
	if first > 10*time.Millisecond || last > 30*time.Second {
		t.Errorf("%T: retries after %s first and %s later, want 10ms and 30s at most", of, first, last)
	}
}
