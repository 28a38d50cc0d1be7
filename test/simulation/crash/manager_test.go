// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	informers "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
)

// registry is a manager that starts nothing: it only keeps the controllers that are registered with it. It has the
// methods of a manager that are called for that.
type registry struct {
	manager.Manager
	clusterOf
	ctx         context.Context
	controllers []*queued
}

// Add keeps a controller, for each type of request that there is.
func (r *registry) Add(runnable manager.Runnable) error {
	switch c := runnable.(type) {
	case controller.TypedController[reconcile.Request]:
		r.controllers = append(r.controllers, capture(r.ctx, c))
	case controller.TypedController[link.Request]:
		r.controllers = append(r.controllers, capture(r.ctx, c))
	case manager.RunnableFunc:
		// What else runs adds watches when the operator starts, or lets metrics be scraped.
	default:
		return fmt.Errorf("the search does not know how to run a %T", runnable)
	}
	return nil
}

func (*registry) GetLogger() logr.Logger                          { return logr.Discard() }
func (r *registry) GetCache() informers.Cache                     { return r.clusterOf.GetCache() }
func (r *registry) GetClient() client.Client                      { return r.client }
func (r *registry) GetAPIReader() client.Reader                   { return r.live }
func (r *registry) GetScheme() *runtime.Scheme                    { return r.clusterOf.GetScheme() }
func (r *registry) GetRESTMapper() meta.RESTMapper                { return r.clusterOf.GetRESTMapper() }
func (*registry) GetEventRecorderFor(string) record.EventRecorder { return nil }
func (*registry) GetControllerOptions() config.Controller {
	// A crash in the middle of a reconcile is a panic.
	return config.Controller{SkipNameValidation: new(true), RecoverPanic: new(false), UsePriorityQueue: new(false)}
}

// clusterOf is a cluster like that of internal/clients.
type clusterOf struct {
	cluster.Cluster
	client client.Client
	live   client.Reader
}

func (c clusterOf) GetClient() client.Client       { return c.client }
func (c clusterOf) GetAPIReader() client.Reader    { return c.live }
func (c clusterOf) GetScheme() *runtime.Scheme     { return scheme.Scheme }
func (c clusterOf) GetRESTMapper() meta.RESTMapper { return c.client.RESTMapper() }
func (c clusterOf) GetCache() informers.Cache      { return nil } // only a source that is started needs it
