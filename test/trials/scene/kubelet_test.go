// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"slices"
	"testing"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSurplus(t *testing.T) {
	pod := func(name, node string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	}
	ending := pod("ending", "one")
	ending.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want []string
	}{
		"one on each Node":          {[]corev1.Pod{pod("a", "one"), pod("b", "two")}, nil},
		"all after the first one":   {[]corev1.Pod{pod("a", "one"), pod("b", "one"), pod("c", "two"), pod("d", "one")}, []string{"b", "d"}},
		"pending Pods have none":    {[]corev1.Pod{pod("a", ""), pod("b", "")}, nil},
		"one that ends leaves room": {[]corev1.Pod{ending, pod("b", "one")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := lo.Map(surplus(tc.pods), func(pod corev1.Pod, _ int) string { return pod.Name })
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
