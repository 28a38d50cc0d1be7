// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/kubeconfig"
)

// soon is how long before their end credentials are reported, as with the alert KarpenterCAPIKubeconfigExpires.
const soon = 3 * 24 * time.Hour

// operatorOf returns the operator; nil if it has no Pods, or they cannot be listed. Then the finding is what is not known for that reason.
func operatorOf(ctx context.Context, v *view.View, unknown string) (*view.Operator, []Finding) {
	operator, err := v.Operator(ctx)
	switch {
	case err != nil:
		return nil, []Finding{warning("Pod", "Repeat this as a user who may list Pods in the namespace of the operator", "%s, because you cannot read the operator's Pods: %v", unknown, err)}
	case operator == nil:
		return nil, []Finding{warning("Pod", "Check that the operator is installed", "%s, because the operator has no Pods", unknown)}
	}
	return operator, nil
}

// credentialsLast finds that the token or client certificate with which the operator reaches the other cluster has expired, or
// expires within 3 days or a third of its time.
func credentialsLast(ctx context.Context, v *view.View) ([]Finding, error) {
	operator, found := operatorOf(ctx, v, "it is not known when the operator's credentials expire")
	if operator == nil {
		return found, nil
	}
	from := operator.Kubeconfig()
	if from == nil {
		return nil, nil // The kubelet renews the token of its ServiceAccount.
	}
	credentials, finding := inspect(ctx, operator, from)
	if finding != nil {
		return []Finding{*finding}, nil
	}
	return ending(from, credentials, v.Now), nil
}

// clusterOf returns for which cluster a kubeconfig is.
func clusterOf(from *view.Kubeconfig) string {
	if from.ForWorkload {
		return "the workload cluster"
	}
	return "the management cluster"
}

// inspect returns the credentials in a kubeconfig, or why they are not known.
func inspect(ctx context.Context, operator *view.Operator, from *view.Kubeconfig) (kubeconfig.Credentials, *Finding) {
	object := "Secret/" + from.Secret
	because := func(f Finding) (kubeconfig.Credentials, *Finding) { return kubeconfig.Credentials{}, &f }
	if from.Secret == "" {
		return because(warning("Pod/"+operator.Pods[0].Name, "Look at the metric karpenter_capi_kubeconfig_expires_seconds", "the operator reads the kubeconfig for %s from %s, which is not in a Secret that it mounts: you cannot see its credentials", clusterOf(from), from.Path))
	}
	content, err := operator.Content(ctx, from)
	switch {
	case apierrors.IsForbidden(err):
		return because(warning(object, "Repeat this as a user who may read the Secret, or look at the metric karpenter_capi_kubeconfig_expires_seconds", "you may not read it in namespace %s, so it is not known when the operator's credentials for %s expire, and who it is there", from.Namespace, clusterOf(from)))
	case err != nil:
		return because(problem(object, "Create the Secret, or correct the values of the chart that name it", "the operator reads the kubeconfig for %s from it, in namespace %s: %v", clusterOf(from), from.Namespace, err))
	}
	credentials, err := kubeconfig.Inspect(content)
	if err != nil {
		return because(problem(object, "Write a kubeconfig into the Secret. The operator reads it again", "the operator reads the kubeconfig for %s from its key %s, in namespace %s: %v", clusterOf(from), from.Key, from.Namespace, err))
	}
	return credentials, nil
}

// ending finds that credentials have expired, or that little of their time is left. Short credentials are renewed often, so that is
// also less than a third of the time for which they are valid.
func ending(from *view.Kubeconfig, credentials kubeconfig.Credentials, now time.Time) []Finding {
	object, until := "Secret/"+from.Secret, credentials.Until.UTC().Format("2006-01-02 15:04:05 MST")
	const do = "Renew the credentials in the Secret, and find out why nothing has done so. The operator reads them again. Those of the Secret CLUSTER-kubeconfig are renewed by the control plane provider"
	limit, because := soon, fmt.Sprintf("%d days", int(soon.Hours()/24))
	if third := credentials.Until.Sub(credentials.From) / 3; !credentials.From.IsZero() && third < limit {
		limit, because = third, fmt.Sprintf("%s, a third of the time for which they are valid", third.Round(time.Minute))
	}
	switch left := credentials.Until.Sub(now); {
	case credentials.Until.IsZero() || left >= limit:
		return nil
	case left <= 0:
		return []Finding{problem(object, do, "the operator's credentials for %s, in namespace %s, have expired at %s", clusterOf(from), from.Namespace, until)}
	default:
		return []Finding{warning(object, do, "the operator's credentials for %s, in namespace %s, expire at %s, which is in less than %s", clusterOf(from), from.Namespace, until, because)}
	}
}
