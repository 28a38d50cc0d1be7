// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

var _ = Describe("The operator with a kubeconfig that it cannot use", long, func() {
	DescribeTable("reports why, and starts when that is corrected", func(ctx SpecContext, cluster, flag string, lacks lack) {
		own, err := env.control.AddUser(envtest.User{Name: "own", Groups: []string{"system:masters"}}, nil)
		Expect(err).NotTo(HaveOccurred())
		ofOwn, err := own.KubeConfig()
		Expect(err).NotTo(HaveOccurred())
		folder := GinkgoT().TempDir()
		ownFile, file := filepath.Join(folder, "own"), filepath.Join(folder, "kubeconfig")
		replace(ownFile, string(ofOwn))
		GinkgoT().Setenv("KUBECONFIG", ownFile)
		account := env.newAccount(ctx, "limited-in-"+cluster, lacks)

		By("starting with a file that is no kubeconfig")
		replace(file, "{{")
		p := startProcess(ctx, cluster, flag+"="+file)
		in := fmt.Sprintf("%s cluster: kubeconfig %s (%s): ", cluster, file, flag)
		p.waits(ctx, in, "it is no kubeconfig")

		By("replacing it by one for an address where nothing listens")
		nowhere := "https://" + freeAddress(ctx)
		replace(file, account.kubeconfig(nowhere))
		p.waits(ctx, in, "the API server "+nowhere+" does not answer; check the server and the certificate authority in this file", "connection refused")

		By("replacing it by one whose user lacks a right")
		replace(file, account.kubeconfig(env.config.Host))
		report := p.waits(ctx, in, "user "+account.user()+" has no right "+lacks.where()+" to "+lacks.verb+" "+lacks.resource+fmt.Sprintf(" (API group %q): ", lacks.group))
		Expect(p.ended).NotTo(BeClosed())

		By("granting what the report contains")
		printed := regexp.MustCompile(`bind it to a (Role|ClusterRole) with the rules (\[\{.*\}\])`).FindStringSubmatch(report)
		Expect(printed).To(HaveLen(3), report)
		var rules []rbacv1.PolicyRule
		Expect(yaml.UnmarshalStrict([]byte(printed[2]), &rules)).To(Succeed())
		Expect(rules).To(ConsistOf(rbacv1.PolicyRule{APIGroups: []string{lacks.group}, Resources: []string{lacks.resource}, Verbs: []string{lacks.verb}}))
		Expect(printed[1]).To(Equal(lo.Ternary(lacks.namespace == "", "ClusterRole", "Role")))
		account.grant(ctx, "reported", lacks.namespace, rules)
		Eventually(ctx, func(g Gomega) { g.Expect(p.probe(ctx, "/readyz")).To(Equal(http.StatusOK)) }).Should(Succeed())
		Expect(p.ended).NotTo(BeClosed(), "the process ends")
		for _, report := range p.reports() {
			Expect(report).NotTo(ContainSubstring(account.token), "a report has the token")
		}
	},
		Entry("for the workload cluster, in the management cluster", "workload", "--workload-kubeconfig",
			lack{group: "karpenter.sh", resource: "nodeclaims/status", verb: "patch"}),
		Entry("for the management cluster, in the workload cluster", "management", "--cluster-api-kubeconfig",
			lack{group: "cluster.x-k8s.io", resource: "machines", verb: "delete", namespace: served.Namespace}),
	)
})

// lack is the only right that an account does not have. The namespace is empty for the whole cluster.
type lack struct {
	group, resource, verb, namespace string
}

func (l lack) where() string {
	return lo.Ternary(l.namespace == "", "in the whole cluster", "in namespace "+l.namespace)
}

// from removes the right from rules.
func (l lack) from(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	return lo.FlatMap(rules, func(rule rbacv1.PolicyRule, _ int) []rbacv1.PolicyRule {
		if !slices.Contains(rule.APIGroups, l.group) || !slices.Contains(rule.Resources, l.resource) {
			return []rbacv1.PolicyRule{rule}
		}
		others, this := *rule.DeepCopy(), *rule.DeepCopy()
		others.Resources, this.Resources = lo.Without(rule.Resources, l.resource), []string{l.resource}
		this.Verbs = lo.Without(rule.Verbs, l.verb)
		return lo.Filter([]rbacv1.PolicyRule{others, this}, func(r rbacv1.PolicyRule, _ int) bool { return len(r.Resources) > 0 && len(r.Verbs) > 0 })
	})
}

// process is the operator as its binary starts it (cmd/main.go), with caches and without controllers: those of another one
// run in this control plane.
type process struct {
	probes, log string
	// ended is closed when the operator ends, which it does not do by itself.
	ended chan struct{}
}

// startProcess starts the operator until the spec ends.
func startProcess(ctx context.Context, name string, args ...string) *process {
	GinkgoHelper()
	p := &process{probes: freeAddress(ctx), log: env.logFile("start-" + name), ended: make(chan struct{})}
	_, port, err := net.SplitHostPort(p.probes)
	Expect(err).NotTo(HaveOccurred())
	options, err := operator.ParseOptions(append(args,
		"--cluster-name="+served.Name, "--cluster-namespace="+served.Namespace,
		"--bind-address=127.0.0.1", "--metrics-port=0", "--health-probe-port="+port, "--disable-leader-election=true",
		"--log-output-paths="+p.log, "--log-error-output-paths="+p.log)...)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(func(ctx SpecContext) {
		cancel()
		Eventually(ctx, p.ended).Should(BeClosed())
	})
	go func() {
		defer GinkgoRecover()
		defer close(p.ended)
		workload, management, err := operator.AwaitClusters(ctx, options)
		if ctx.Err() != nil {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		ctx, op, err := operator.New(ctx, workload, management, options)
		Expect(err).NotTo(HaveOccurred())
		Expect(op.Start(ctx)).To(Succeed())
	}()
	return p
}

// waits expects that the process is alive, and not ready because of a problem, and returns the report.
func (p *process) waits(ctx context.Context, parts ...string) (report string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		reports := p.reports()
		g.Expect(reports).NotTo(BeEmpty())
		report = reports[len(reports)-1]
		for _, part := range parts {
			g.Expect(report).To(ContainSubstring(part))
		}
	}).Should(Succeed())
	Expect(p.ended).NotTo(BeClosed(), "the process ends")
	Expect(p.probe(ctx, "/healthz")).To(Equal(http.StatusOK))
	Expect(p.probe(ctx, "/readyz")).To(Equal(http.StatusServiceUnavailable))
	return report
}

// probe returns the status of a health probe; 0 if nothing answers.
func (p *process) probe(ctx context.Context, path string) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.probes+path, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

// reports returns why the operator could not start, as its log has it.
func (p *process) reports() []string {
	GinkgoHelper()
	text, err := os.ReadFile(p.log)
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return lo.FilterMap(strings.Split(string(text), "\n"), func(line string, _ int) (string, bool) {
		entry := struct{ Message, Error string }{}
		err := json.Unmarshal([]byte(line), &entry)
		return entry.Error, err == nil && strings.HasPrefix(entry.Message, "the operator cannot start")
	})
}

// freeAddress returns an address on which nothing listens.
func freeAddress(ctx context.Context) string {
	GinkgoHelper()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	Expect(listener.Close()).To(Succeed())
	return listener.Addr().String()
}

// replace replaces the content of a file at once, as the kubelet does.
func replace(file, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(file+".new", []byte(text), 0o600)).To(Succeed())
	Expect(os.Rename(file+".new", file)).To(Succeed())
}
