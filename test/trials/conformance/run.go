// SPDX-License-Identifier: Apache-2.0

// Package conformance runs Karpenter's own test suites against this operator on local stacks, with its feature gates on.
// The suites are those of the version of Karpenter that the operator is built with; nothing about them is changed.
package conformance

import (
	"context"
	"debug/buildinfo"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/samber/lo"
	"golang.org/x/sync/errgroup"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

//go:embed manifests/machines.yaml
var machines []byte

//go:embed manifests/nodeclass.yaml
var nodeClass []byte

// options are the flags.
type options struct {
	full     bool
	only     string
	focus    string
	parallel int
	dir      string
	timeout  time.Duration
}

// Run runs the suites. It fails if a spec fails.
func Run(ctx context.Context, args []string) error {
	chosen := options{dir: filepath.Join(".stack", "conformance")}
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.BoolVar(&chosen.full, "full", os.Getenv("CONFORMANCE") == "full", "also run the specs that take long")
	flags.StringVar(&chosen.only, "only", "", "the only shard to run: integration, drift, buffers, static, repair, nodeclaims or reboot")
	flags.StringVar(&chosen.focus, "focus", "", "regular expression of the specs to run; only with -only")
	flags.IntVar(&chosen.parallel, "parallel", 3, "number of stacks at a time")
	flags.DurationVar(&chosen.timeout, "timeout", 2*time.Hour, "how long a shard can take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	measured := lo.Filter(shards, func(s shard, _ int) bool { return chosen.only == "" || s.name == chosen.only })
	if len(measured) == 0 {
		return fmt.Errorf("-only %s: there is no such shard", chosen.only)
	}
	if chosen.focus != "" && chosen.only == "" {
		return errors.New("-focus needs -only")
	}
	return chosen.run(ctx, measured)
}

func (o *options) run(ctx context.Context, measured []shard) error {
	began := time.Now()
	found := make([]results, len(measured))
	var group errgroup.Group
	group.SetLimit(max(o.parallel, 1))
	errs := make([]error, len(measured))
	for i, s := range measured {
		group.Go(func() error {
			began := time.Now()
			found[i], errs[i] = o.shard(ctx, s)
			fmt.Printf("==> %s: %s seconds=%.0f\n", s.name, found[i], time.Since(began).Seconds())
			return nil
		})
	}
	_ = group.Wait() // Each shard has its own error.
	var all results
	for i, s := range measured {
		all.add(found[i])
		if errs[i] != nil {
			errs[i] = fmt.Errorf("%s: %w", s.name, errs[i])
		}
	}
	fmt.Print(all.lines())
	fmt.Printf("conformance: %s seconds=%.0f\n", all, time.Since(began).Seconds())
	if len(all.failed) > 0 {
		errs = append(errs, fmt.Errorf("%d specs failed", len(all.failed)))
	}
	return errors.Join(errs...)
}

// shard runs one shard on its own stack.
func (o *options) shard(ctx context.Context, s shard) (found results, err error) {
	dir := filepath.Join(o.dir, s.name)
	on, err := stack.Up(ctx, stack.Options{
		Dir: dir, Kubeadm: true, OperatorArgs: []string{"--feature-gates=" + stack.FeatureGates},
	})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, on.Down(context.WithoutCancel(ctx))) }()
	if err := errors.Join(on.Create(ctx, machines), on.Workload.Create(ctx, catalog())); err != nil {
		return found, err
	}
	report, err := o.start(ctx, s, on)
	found, reportErr := readReport(report, s, o.full)
	if reportErr != nil {
		return found, errors.Join(err, reportErr)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(found.failed) > 0 {
		fmt.Printf("The output of %s is %s, beside the logs of its stack\n", s.name, filepath.Join(on.LogDir(), suiteLog))
		return found, nil
	}
	return found, err
}

// suiteLog has the output of a suite.
const suiteLog = "suite.log"

// start runs the binary of the suite, and returns the file of its report.
func (o *options) start(ctx context.Context, s shard, on *stack.Stack) (report string, err error) {
	binary, err := filepath.Abs(filepath.Join("bin", "karpenter-"+s.suite))
	if err != nil {
		return "", err
	}
	if err := sameKarpenter(binary); err != nil {
		return "", err
	}
	report, class := filepath.Join(on.LogDir(), "report.json"), filepath.Join(on.Dir(), "nodeclass.yaml")
	if err := writeClass(class, s.restarts); err != nil {
		return "", err
	}
	log, err := os.Create(filepath.Join(on.LogDir(), suiteLog))
	if err != nil {
		return "", err
	}
	defer log.Close() //nolint:errcheck // The suite has written it.
	focus := lo.CoalesceOrEmpty(o.focus, s.focus.String())
	arguments := []string{
		"--default-nodeclass=" + class, "--ginkgo.json-report=" + report, "--ginkgo.v", "--ginkgo.no-color",
		"--ginkgo.focus=" + focus, "--ginkgo.timeout=" + o.timeout.String(), "-test.timeout=0",
	}
	if len(s.nodePool) > 0 {
		pool := filepath.Join(on.Dir(), "nodepool.yaml")
		if err := os.WriteFile(pool, s.nodePool, 0o600); err != nil {
			return "", err
		}
		arguments = append(arguments, "--default-nodepool="+pool)
	}
	if s.fault != "" {
		arguments = append(arguments, s.fault)
	}
	for _, skipped := range skipsOf(o.full) {
		arguments = append(arguments, "--ginkgo.skip="+skipped.specs.String())
	}
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Dir, command.Stdout, command.Stderr = on.LogDir(), log, log
	command.Env = append(os.Environ(), "KUBECONFIG="+on.Kubeconfig())
	return report, command.Run()
}

// writeClass writes the template that the specs copy to a file.
func writeClass(file string, restarts bool) error {
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := yaml.UnmarshalStrict(nodeClass, template); err != nil {
		return err
	}
	if restarts {
		template.Spec.Remediation = &v1alpha1.Remediation{TemplateRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "SimulatedRemediationTemplate", Name: "reboot",
		}}
	}
	data, err := yaml.Marshal(template)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// sameKarpenter checks that the suites are those of the Karpenter that the operator contains.
func sameKarpenter(suite string) error {
	const module = "sigs.k8s.io/karpenter"
	versions := map[string]string{}
	for _, file := range []string{suite, filepath.Join("bin", "karpenter-capi")} {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the versions of %s: %w", file, err)
		}
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				versions[dependency.Version] = file
			}
		}
	}
	if len(versions) != 1 {
		return fmt.Errorf("the suites and the operator must have the same version of %s: %v", module, versions)
	}
	return nil
}
