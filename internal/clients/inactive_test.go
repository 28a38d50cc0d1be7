// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// live is a cluster whose API server and cache differ.
type live struct {
	cluster.Cluster
	server, cache client.Client
}

func (l live) GetAPIReader() client.Reader { return l.server }
func (l live) GetClient() client.Client    { return l.cache }

// Nothing is created for a Cluster that is paused, is being deleted or does not exist, which only the API server knows
// for sure. If it does not answer, that is unknown.
func TestInactive(t *testing.T) {
	served := func(change func(*clusterv1.Cluster)) client.Object {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}}
		change(c)
		return c
	}
	active := served(func(*clusterv1.Cluster) {})
	for name, tc := range map[string]struct {
		server []client.Object
		cached []client.Object
		err    error
		want   bool
	}{
		"active":              {server: []client.Object{active}},
		"not paused any more": {server: []client.Object{active}, cached: []client.Object{served(func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })}},
		"not paused":          {server: []client.Object{served(func(c *clusterv1.Cluster) { c.Spec.Paused = new(false) })}},
		"paused":              {server: []client.Object{served(func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })}, cached: []client.Object{active}, want: true},
		"being deleted": {server: []client.Object{served(func(c *clusterv1.Cluster) {
			c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"cluster.cluster.x-k8s.io"}
		})}, cached: []client.Object{active}, want: true},
		"deleted":     {cached: []client.Object{active}, want: true},
		"another one": {server: []client.Object{served(func(c *clusterv1.Cluster) { c.Name = "other" })}, want: true},
		"no answer":   {server: []client.Object{active}, err: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(objects []client.Object, err error) client.Client {
				return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
						return errors.Join(err, c.Get(ctx, key, into, options...))
					},
				}).Build()
			}
			clusters := &Clusters{Cluster: types.NamespacedName{Namespace: "fleet", Name: "served"}, Management: live{server: of(tc.server, tc.err), cache: of(tc.cached, nil)}}
			got, err := clusters.Inactive(t.Context())
			if got != tc.want || (err != nil) != (tc.err != nil) {
				t.Errorf("got %t and %v, want %t", got, err, tc.want)
			}
		})
	}
}
