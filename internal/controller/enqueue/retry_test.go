// SPDX-License-Identifier: Apache-2.0

package enqueue_test

import (
	"context"
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
	"github.com/karpenter-capi/karpenter-capi/internal/controller/nodeclaim"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/scalableresource"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
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
	for name, register := range map[string]func(*operator.Clusters) func(context.Context, manager.Manager) error{
		"claims": func(clusters *operator.Clusters) func(context.Context, manager.Manager) error {
			return nodeclaim.NewReconciler(clusters, catalog.New(clusters), nil, nil, clock.RealClock{}, nil).Register
		},
		"scalable resources": func(clusters *operator.Clusters) func(context.Context, manager.Manager) error {
			return scalableresource.NewReconciler(clusters, catalog.New(clusters), nil, clock.RealClock{}).Register
		},
	} {
		t.Run(name, func(t *testing.T) {
			mgr, err := ctrl.NewManager(&rest.Config{}, manager.Options{
				Scheme:         scheme.Scheme,
				Metrics:        metricsserver.Options{BindAddress: "0"},
				MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			registry := &registry{Manager: mgr}
			if err := register(&operator.Clusters{Workload: mgr, Management: mgr})(t.Context(), registry); err != nil {
				t.Fatal(err)
			}
			if len(registry.controllers) != 1 {
				t.Fatalf("got %d controllers, want 1", len(registry.controllers))
			}
			// No interface provides it.
			limiter, is := reflect.ValueOf(registry.controllers[0]).Elem().FieldByName("RateLimiter").Interface().(workqueue.TypedRateLimiter[reconcile.Request])
			if !is {
				t.Fatalf("%T has no rate limiter", registry.controllers[0])
			}
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "resource"}}
			first, last := limiter.When(request), time.Duration(0)
			for range 50 {
				last = limiter.When(request)
			}
			if first > 10*time.Millisecond || last > 30*time.Second {
				t.Errorf("retries after %s first and %s later, want 10ms and 30s at most", first, last)
			}
		})
	}
}
