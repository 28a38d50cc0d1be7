// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/kubeconfig"
)

// apiServer answers what the preflight asks.
type apiServer struct {
	unauthorized bool
	denied       []string // group/resource/verb
	absent       []string // resources
	absentGroup  string   // with its version
	unknownUser  int      // the status of the answer to who the user is
	clusters     []string
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch {
	case s.unauthorized:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized}
	case s.unknownUser != 0 && strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		http.Error(w, "", s.unknownUser)
		return
	case s.absentGroup != "" && r.URL.Path == "/apis/"+s.absentGroup:
		http.Error(w, "", http.StatusNotFound)
		return
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		answer = authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectReview", APIVersion: "authentication.k8s.io/v1"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "jane"}},
		}
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		review := &authorizationv1.SelfSubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked := review.Spec.ResourceAttributes
		review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
		review.Status.Allowed = !slices.Contains(s.denied, asked.Group+"/"+asked.Resource+"/"+asked.Verb)
		answer = review
	case strings.HasSuffix(r.URL.Path, "/clusters"):
		list := &clusterv1.ClusterList{TypeMeta: metav1.TypeMeta{Kind: "ClusterList", APIVersion: clusterv1.GroupVersion.String()}}
		for _, name := range s.clusters {
			list.Items = append(list.Items, clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		}
		answer = list
	case strings.HasPrefix(r.URL.Path, "/apis/"):
		answer = s.resources(strings.TrimPrefix(r.URL.Path, "/apis/"))
	default:
		answer = metav1.APIGroupList{}
		if r.URL.Path == "/apis" {
			version := metav1.GroupVersionForDiscovery{GroupVersion: "cluster.x-k8s.io/v1beta2", Version: "v1beta2"}
			answer = metav1.APIGroupList{Groups: []metav1.APIGroup{{
				Name: "cluster.x-k8s.io", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
			}}}
		}
	}
	if !s.unauthorized {
		w.Header().Set("Content-Type", "application/json")
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// resources returns all resources that the operator needs in any version, without those that are absent.
func (s *apiServer) resources(version string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: version}
	for name, kind := range map[string]string{
		"nodepools": "NodePool", "nodeclaims": "NodeClaim", "karpentermachinetemplates": "KarpenterMachineTemplate",
		"instancetypecatalogs": "InstanceTypeCatalog", "clusters": "Cluster", "machines": "Machine", "machinesets": "MachineSet",
		"machinedeployments": "MachineDeployment",
	} {
		if !slices.Contains(s.absent, name) {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: true})
		}
	}
	return list
}

// writeKubeconfig writes a kubeconfig for a server, and returns its path.
func writeKubeconfig(t *testing.T, name, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	text := fmt.Sprintf("clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: secret}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", server)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func ignore(string, string) kubeconfig.Report { return func(error) {} }

// What prevents a start is reported: which file, which cluster, what, and what to do.
func TestPreflight(t *testing.T) {
	for name, tc := range map[string]struct {
		workload, management apiServer
		nowhere, broken      bool // the kubeconfig of the workload cluster
		brokenOwn            bool // that of the management cluster
		unnamed              bool
		ignoreDevices        bool
		want                 []string // empty if the operator can start
	}{
		"all is well": {},
		"it cannot be parsed": {broken: true, want: []string{
			"workload cluster: kubeconfig WORKLOAD (--workload-kubeconfig): kubeconfig WORKLOAD: it is no kubeconfig",
		}},
		"neither can be parsed": {broken: true, brokenOwn: true, want: []string{
			"workload cluster: kubeconfig WORKLOAD (--workload-kubeconfig): kubeconfig WORKLOAD: it is no kubeconfig",
			"management cluster: kubeconfig MANAGEMENT (KUBECONFIG): kubeconfig MANAGEMENT: it is no kubeconfig",
		}},
		"one cannot be parsed, and the other lacks a right": {
			broken: true, management: apiServer{denied: []string{"cluster.x-k8s.io/machines/delete"}},
			want: []string{
				"workload cluster: kubeconfig WORKLOAD (--workload-kubeconfig): kubeconfig WORKLOAD: it is no kubeconfig",
				"management cluster: kubeconfig MANAGEMENT (KUBECONFIG): user jane has no right in namespace default to delete machines",
			},
		},
		"it points nowhere": {nowhere: true, want: []string{
			"workload cluster: kubeconfig WORKLOAD (--workload-kubeconfig): the API server http://127.0.0.1:1 does not answer; check", "connection refused",
		}},
		"other credentials": {management: apiServer{unauthorized: true}, want: []string{
			"management cluster: kubeconfig MANAGEMENT (KUBECONFIG): the API server http://", "does not accept the credentials: renew them in this file",
		}},
		"rights are missing": {
			workload:   apiServer{denied: []string{"/nodes/list", "/nodes/patch", "karpenter.sh/nodeclaims/watch"}},
			management: apiServer{denied: []string{"cluster.x-k8s.io/machines/delete"}},
			want: []string{
				"workload cluster: kubeconfig WORKLOAD (--workload-kubeconfig): user jane has no right in the whole cluster to ",
				`nodes (API group "")`, `watch nodeclaims (API group "karpenter.sh")`,
				"install the roles of the chart karpenter-capi, or bind it to a ClusterRole with the rules",
				`{apiGroups: ["karpenter.sh"], resources: [nodeclaims], verbs: [watch]}`,
				`management cluster: kubeconfig MANAGEMENT (KUBECONFIG): user jane has no right in namespace default to delete machines (API group "cluster.x-k8s.io"): install the roles of the chart karpenter-capi, or bind it to a Role with the rules [{apiGroups: ["cluster.x-k8s.io"], resources: [machines], verbs: [delete]}]`,
			},
		},
		"rights to optional kinds": {workload: apiServer{denied: []string{"autoscaling.x-k8s.io/capacitybuffers/list"}}},
		"rights to devices": {workload: apiServer{denied: []string{"resource.k8s.io/deviceclasses/watch"}}, want: []string{
			`workload cluster: kubeconfig WORKLOAD (--workload-kubeconfig): user jane has no right in the whole cluster to watch deviceclasses (API group "resource.k8s.io")`,
		}},
		"rights to devices that are ignored": {ignoreDevices: true, workload: apiServer{denied: []string{"resource.k8s.io/deviceclasses/watch"}}},
		"kinds are missing": {
			workload: apiServer{absent: []string{"nodepools", "karpentermachinetemplates"}}, management: apiServer{absent: []string{"machines"}},
			want: []string{
				"the cluster has no karpentermachinetemplates in karpenter.cluster.x-k8s.io/v1alpha1, no nodepools in karpenter.sh/v1: install the chart karpenter-capi-crd in it",
				"the cluster has no machines in cluster.x-k8s.io/v1beta2: install Cluster API v1.11 or later in it",
			},
		},
		"no kind is there": {
			workload: apiServer{absentGroup: "karpenter.sh/v1"}, management: apiServer{absentGroup: "cluster.x-k8s.io/v1beta2"},
			want: []string{
				"the cluster has no nodeclaims in karpenter.sh/v1, no nodepools in karpenter.sh/v1: install the chart karpenter-capi-crd in it",
				"the cluster has no clusters in cluster.x-k8s.io/v1beta2, no machinedeployments in cluster.x-k8s.io/v1beta2, no machines in cluster.x-k8s.io/v1beta2, no machinesets in cluster.x-k8s.io/v1beta2: install Cluster API v1.11 or later in it",
			},
		},
		"the API server does not say who the user is":  {workload: apiServer{unknownUser: http.StatusNotFound}},
		"the user has no right to know who they are":   {workload: apiServer{unknownUser: http.StatusForbidden}},
		"the API server cannot answer who the user is": {workload: apiServer{unknownUser: http.StatusInternalServerError}, want: []string{"does not answer; check"}},
		"two Clusters": {unnamed: true, management: apiServer{clusters: []string{"a", "b"}}, want: []string{
			"expected exactly one Cluster, found default/a, default/b: set --cluster-name and --cluster-namespace",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			workload, management := httptest.NewServer(&tc.workload), httptest.NewServer(&tc.management)
			defer workload.Close()
			defer management.Close()
			options := &Options{WorkloadKubeconfig: writeKubeconfig(t, "workload", workload.URL), ClusterName: "demo", ClusterNamespace: "default"}
			options.Core.IgnoreDRARequests = tc.ignoreDevices
			own := writeKubeconfig(t, "management", management.URL)
			t.Setenv("KUBECONFIG", own)
			if tc.unnamed {
				options.ClusterName, options.ClusterNamespace = "", ""
			}
			if tc.nowhere {
				options.WorkloadKubeconfig = writeKubeconfig(t, "workload", "http://127.0.0.1:1")
			}
			for path, broken := range map[string]bool{options.WorkloadKubeconfig: tc.broken, own: tc.brokenOwn} {
				if !broken {
					continue
				}
				if err := os.WriteFile(path, []byte("{{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			found, err := preflight(t.Context(), options, ignore)
			if len(tc.want) == 0 {
				if err != nil || found.workload.Host != workload.URL+"/" && found.workload.Host != workload.URL || !strings.HasPrefix(found.management.Host, management.URL) {
					t.Fatalf("got %v and error %v", found, err)
				}
				return
			}
			if err == nil {
				t.Fatal("the operator starts")
			}
			text := strings.NewReplacer(options.WorkloadKubeconfig, "WORKLOAD", own, "MANAGEMENT").Replace(err.Error())
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("got:\n%s\nwant %q", text, want)
				}
			}
			if strings.Contains(text, "secret") {
				t.Errorf("the error has the token:\n%s", text)
			}
		})
	}
}

// When the file is correct, the operator starts.
func TestRetry(t *testing.T) {
	server := httptest.NewServer(&apiServer{})
	defer server.Close()
	path := writeKubeconfig(t, "kubeconfig", server.URL)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	options := &Options{ClusterName: "demo", ClusterNamespace: "default"}
	attempts := 0
	found, err := retry(t.Context(), time.Millisecond, func() (*configs, error) {
		if attempts > 5 {
			t.Fatal("the operator does not start with a correct file")
		}
		if attempts++; attempts == 3 {
			if err := os.WriteFile(path, good, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return preflight(t.Context(), options, ignore)
	})
	if err != nil || attempts != 3 || !strings.HasPrefix(found.workload.Host, server.URL) {
		t.Errorf("got %v after %d attempts, and error %v", found, attempts, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := os.WriteFile(path, []byte("{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := retry(ended, time.Hour, func() (*configs, error) { return preflight(ended, options, ignore) }); err == nil {
		t.Error("it goes on when the process ends")
	}
}

// While the operator cannot start, the process is alive and not ready.
func TestProbes(t *testing.T) {
	listener, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := serve(t.Context(), listener)
	defer stop()
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		response, err := http.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, response.Status, want)
		}
	}
}

// In the management cluster the lease has the name of the Cluster, and the operator's Node is none of the workload cluster.
func TestInManagementCluster(t *testing.T) {
	const own = "/kubeconfig"
	for name, tc := range map[string]struct {
		args        []string
		lease, node string
		wantError   string
	}{
		"in the workload cluster":        {args: []string{"--cluster-name=a", "--cluster-namespace=b"}, lease: "karpenter-leader-election", node: "n"},
		"in the management cluster":      {args: []string{"--workload-kubeconfig=" + own, "--cluster-name=a", "--cluster-namespace=b"}, lease: "karpenter-leader-election.b.a"},
		"the Cluster is not named":       {args: []string{"--workload-kubeconfig=" + own}, lease: "karpenter-leader-election"},
		"the lease is named":             {args: []string{"--workload-kubeconfig=" + own, "--cluster-name=a", "--cluster-namespace=b", "--leader-election-name=x"}, lease: "x"},
		"in neither of the two clusters": {args: []string{"--workload-kubeconfig=" + own, "--cluster-api-kubeconfig=" + own}, wantError: "--cluster-api-kubeconfig and --workload-kubeconfig are both set"},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := ParseOptions(append(tc.args, "--node-name=n")...)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("got %v, want %q", err, tc.wantError)
				}
				return
			}
			if err != nil || options.Core.LeaderElectionName != tc.lease || options.NodeName != tc.node {
				t.Errorf("got the lease %s and the Node %q, and error %v", options.Core.LeaderElectionName, options.NodeName, err)
			}
		})
	}
}
