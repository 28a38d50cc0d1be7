// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
)

// entry returns an entry of the audit log.
func entry(t *testing.T, agent, verb, resource, subresource, uri string, code int) audit.Entry {
	t.Helper()
	line := fmt.Sprintf(`{"verb":%q,"userAgent":"%s/v1","requestURI":%q,"objectRef":{"resource":%q,"subresource":%q},"responseStatus":{"code":%d}}`,
		verb, agent, uri, resource, subresource, code)
	parsed := audit.Entry{}
	if err := json.Unmarshal([]byte(line), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestRequests(t *testing.T) {
	const ours = operatorAgent
	up := []audit.Entry{
		entry(t, ours, "get", "nodeclaims", "", "/apis/karpenter.sh/v1/nodeclaims/a", 200),
		entry(t, ours, "patch", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m", 409),
		entry(t, ours, "get", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m", 429),
		entry(t, ours, "get", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m", 200),
		entry(t, ours, "patch", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m", 429),
		entry(t, ours, "patch", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m", 200),
		entry(t, ours, "patch", "nodeclaims", "status", "/apis/karpenter.sh/v1/nodeclaims/a/status", 429),
		entry(t, ours, "patch", "nodeclaims", "status", "/apis/karpenter.sh/v1/nodeclaims/a/status", 200),
		entry(t, ours, "get", "clusters", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/demo", 200),
		entry(t, ours, "watch", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/machines?watch=true", 200),
		entry(t, ours, "list", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/machines?limit=500&resourceVersion=0", 200),
		entry(t, "cluster-api-core", "patch", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m", 409),
	}
	down := []audit.Entry{
		entry(t, ours, "list", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines?labelSelector=x%3Dy", 200),
		entry(t, ours, "list", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines?labelSelector=x%3Dy%2Ckarpenter.cluster.x-k8s.io%2Fnode-claim-uid", 200),
		entry(t, ours, "patch", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m", 422),
		entry(t, ours, "delete", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m", 404),
		entry(t, ours, "patch", "machines", "", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m", 200),
	}
	measured := &result{Variant: operator.name, N: 2, Requests: requestCounts(up, down)}
	if diff := cmp.Diff(requestCount{requestKind{ours, "patch", "machines", 200}, 1, 1}, measured.Requests[0], cmp.AllowUnexported(requestCount{})); diff != "" {
		t.Errorf("most frequent request (-want +got):\n%s", diff)
	}
	got := map[string]float64{
		"requests": measured.requests(), "refused": measured.refused(), "live reads": measured.liveReads(), "other reads": measured.otherReads(),
		"writes of Machines": measured.machineWrites(), "conflicts": measured.conflicts(), "writes of claims": measured.claimWrites(),
	}
	want := map[string]float64{
		"requests": 7, "refused": 1.5, "live reads": 1.5, "other reads": 1, "writes of Machines": 2.5, "conflicts": 0.4, "writes of claims": 0.5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}
