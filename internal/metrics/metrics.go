// SPDX-License-Identifier: Apache-2.0

package metrics

// Labels that several metrics have.
var (
	cluster      = Label{"cluster", "`workload` and `management`"}
	template     = Label{"template", "names of KarpenterMachineTemplates"}
	zone         = Label{"zone", "zones of offerings; empty without a zone"}
	capacityType = Label{"capacity_type", "`on-demand`, `spot` and `reserved`"}
)

// The process.
var (
	BuildInfo = gauge(Definition{
		Name:     "karpenter_capi_build_info",
		Help:     "Always 1. The labels are the versions from which the operator was built.",
		Question: "Which version runs?",
		Labels: []Label{
			{"version", "one"}, {"commit", "one"}, {"goversion", "one"}, {"goarch", "one"}, {"karpenter_version", "one"}, {"cluster_api_version", "one"},
		},
	})
)

// The connections to both clusters.
var (
	ClusterReachable = gauge(Definition{
		Name:     "karpenter_capi_cluster_reachable",
		Help:     "1 while the API server of the cluster answers, and the caches of the cluster follow it. 0 while launches and deletions wait for that.",
		Question: "Can the operator work?",
		Labels:   []Label{cluster},
	})
	ClusterDisturbances = counter(Definition{
		Name:     "karpenter_capi_cluster_disturbances_total",
		Help:     "How often a failed request, a broken watch, a start or a clock that was set could hide a write or an event of Machines and MachinePools. MachinePools shrink only some time after that.",
		Question: "Why does a MachinePool not shrink?",
		Labels:   []Label{cluster},
	})
	CacheAge = computed(Definition{
		Name:     "karpenter_capi_cache_age_seconds",
		Help:     "For how long the caches of the cluster have not followed its API server. 0 while they do.",
		Question: "How old is what the operator knows?",
		Labels:   []Label{cluster},
	})
	WaitingRequests = gauge(Definition{
		Name:     "karpenter_capi_waiting_requests",
		Help:     "How many requests to API servers wait because as many as allowed are in flight. The lane urgent has what links Machines and sets provider IDs, and reads.",
		Question: "Is an API server too slow for the operator?",
		Labels:   []Label{{"lane", "`urgent`, `usual` and `events`"}},
	})
	APIWrites = counter(Definition{
		Name:     "karpenter_capi_api_writes_total",
		Help:     "How many write requests the operator has sent, without dry runs. A cluster in which nothing happens has none, except for the lease.",
		Question: "What does the operator cost the API servers, and what does it write?",
		Labels: []Label{
			cluster, {"group", "API groups that the operator writes to; empty for the core group"},
			{"resource", "kinds that the operator writes, as plurals"}, {"subresource", "`status` and others; empty for the object itself"},
			{"verb", "`create`, `update`, `patch` and `delete`"},
		},
	})
	KubeconfigInvalid = gauge(Definition{
		Name:     "karpenter_capi_kubeconfig_invalid",
		Help:     "1 if the kubeconfig for a cluster cannot be used since it changed, so that its content before that stays in use.",
		Question: "Has the user written a broken kubeconfig?",
		Labels:   []Label{cluster},
	})
	KubeconfigExpires = computed(Definition{
		Name:     "karpenter_capi_kubeconfig_expires_seconds",
		Help:     "In how many seconds the token or the client certificate in the kubeconfig for a cluster expires; negative after that. A kubeconfig whose credentials have no known end has no series.",
		Question: "When does the operator lose its access?",
		Labels:   []Label{cluster},
	})
)

// Launches.
var (
	LaunchPhase = histogram(Definition{
		Name:     "karpenter_capi_launch_phase_duration_seconds",
		Help:     "How long each phase of a launch took, from the NodeClaim to its Machine, the link of both, the provider ID, the Node and its initialization. The first phase of a spare Machine takes 0 seconds.",
		Question: "Which part of a launch is slow: Cluster API, the infrastructure, or the boot?",
		Labels:   []Label{template, {"phase", "`machine`, `link`, `provider_id`, `node` and `initialized`"}},
	}, 1, 5, 10, 30, 60, 120, 180, 300, 600, 900, 1800, 3600)
	LaunchFailures = counter(Definition{
		Name:     "karpenter_capi_launch_failures_total",
		Help:     "How many NodeClaims were replaced because their machine could not be launched. Each template has a series for each reason from the start.",
		Question: "Which templates fail, and why?",
		Labels:   []Label{template, {"reason", "[reasons](conditions.md#reasons) of `MachineAvailable=False`"}},
	})
	LaunchStalls = counter(Definition{
		Name:     "karpenter_capi_launch_stalls_total",
		Help:     "How often the launch of a NodeClaim has stopped because Cluster API or a provider did not act on it, or its scalable resource was rejected. Each template has a series for each reason from the start.",
		Question: "Does Cluster API hold launches up?",
		Labels:   []Label{template, {"reason", "[reasons](conditions.md#reasons) of `MachineAvailable=Unknown`, without `Resumed`"}},
	})
)

// What exists now.
var (
	NodeClaimsWaiting = computed(Definition{
		Name:     "karpenter_capi_nodeclaims_waiting",
		Help:     "How many launched NodeClaims have no Machine.",
		Question: "How much capacity is on its way that does not even have a Machine?",
		Labels:   []Label{template},
	})
	Machines = computed(Definition{
		Name:     "karpenter_capi_machines",
		Help:     "How many Machines of the template exist. A spare one serves no NodeClaim, an unlinked one a NodeClaim that no longer exists, and a leaving one is marked for deletion or being deleted.",
		Question: "Are there machines that serve nobody?",
		Labels:   []Label{template, {"state", "`linked`, `spare`, `unlinked` and `leaving`"}},
	})
	Offerings = computed(Definition{
		Name:     "karpenter_capi_offerings",
		Help:     "How many offerings of the template Karpenter can choose now, and how many it cannot, with the reason in the status of the template. Those without such a reason (Other) are at their limit or paused.",
		Question: "What can be bought now, and why can the rest not?",
		Labels:   []Label{template, {"available", "`true` and `false`"}, {"reason", "reasons of `status.unavailableOfferings` and `status.invalidOfferings`, and `Other`; empty if they are available"}},
	})
	NodeClaimsPrice = computed(Definition{
		Name:     "karpenter_capi_nodeclaims_price",
		Help:     "The sum of the prices per hour of the offerings of launched NodeClaims, with the adjustments and in the currency of their catalogs. If the template no longer has the offering, it is the price at the launch.",
		Question: "What does the cluster cost per hour?",
		Labels:   []Label{{"nodepool", "names of NodePools; empty without one"}, template, zone, capacityType},
	})
	OfferingPrice = computed(Definition{
		Name:     "karpenter_capi_offering_price",
		Help:     "The price per hour of each offering, with the adjustments of its catalog. It exists only with `--offering-price-metrics`, because there can be thousands of offerings.",
		Question: "What does each offering cost?",
		Labels:   []Label{template, {"instance_type", "instance types of the template"}, zone, capacityType},
	})
)

// Forget removes the series of a template that no longer exists.
func Forget(name string) {
	of := map[string]string{template.Name: name}
	LaunchPhase.DeletePartialMatch(of)
	LaunchFailures.DeletePartialMatch(of)
	LaunchStalls.DeletePartialMatch(of)
}
